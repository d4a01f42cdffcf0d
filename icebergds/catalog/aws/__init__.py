"""Calls AWS for the catalogs that are AWS services: Glue, DynamoDB and S3 Tables."""
