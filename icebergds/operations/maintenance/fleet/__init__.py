"""Says what tables cost beyond the least possible, side by side, as one HTML file."""
