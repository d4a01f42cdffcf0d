"""How schemas change: promotions, unions by name, fresh ids."""
