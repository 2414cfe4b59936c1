"""Files: sealed on this device, carried as blobs, and named by a message.

blob_http.py    requests about blobs, on threads
transfers.py    a whole upload or download: it goes on where it stopped, whatever breaks
"""
