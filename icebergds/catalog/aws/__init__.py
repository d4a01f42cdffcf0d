"""Talks to AWS for the catalogs that are services of AWS: Glue, DynamoDB and S3 Tables."""
