"""Files: sealed on this device, carried as blobs, and named by a message.

blob_http.py    requests about blobs, on threads
transfers.py    a whole upload or download: it goes on where it stopped, whatever breaks
rows.py         what a profile keeps of files
part.py         files in the machine: the order of things, and whom a blob is for
addressing.py   the values of that
sealed_file.py  a file on this disk, sealed chunk by chunk
stream_check.py a peer's file on its way in, verified chunk by chunk
opened_file.py  sealed files of peers in the profile
saved_file.py   a peer's file on its way to where a person wants it
jobs.py         one errand each: upload, fetch, name an audience, tidy up
worker.py       works at the errands that are due
names.py        names from peers and for peers
thumbnails.py   small pictures, with Pillow
"""
