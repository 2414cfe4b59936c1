"""The bytes of blobs, outside the log: a folder, or a bucket of S3; and what keeps them in step with the records."""
