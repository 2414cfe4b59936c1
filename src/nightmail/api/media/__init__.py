"""Uploads and downloads of sealed blobs."""
