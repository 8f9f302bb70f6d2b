"""Puts a directory into a bucket: put.py s3|azure ENDPOINT BUCKET PREFIX DIRECTORY. Standard library alone."""

import base64
import email.utils
import hashlib
import hmac
import http.client
import os
import sys
import urllib.parse

# Azurite's own, which everybody knows.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def azure_headers(method, path, query, length):
    headers = {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    if method == "PUT" and not query:
        headers["x-ms-blob-type"] = "BlockBlob"
    canonical = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    resource = f"/{ACCOUNT}{path}" + "".join(f"\n{key}:{value}" for key, value in sorted(query.items()))
    length = str(length) if length else ""
    text = f"{method}\n\n\n{length}\n\n\n\n\n\n\n\n\n{canonical}{resource}"
    digest = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
    headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
    return headers


def main(kind, endpoint, bucket, prefix, directory):
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(endpoint).netloc)
    root = f"/{ACCOUNT}/{bucket}" if kind == "azure" else f"/{bucket}"

    def put(path, body, query, allowed):
        path = urllib.parse.quote(path)
        headers = azure_headers("PUT", path, query, len(body)) if kind == "azure" else {"x-amz-acl": "public-read"}
        target = path + ("?" + urllib.parse.urlencode(query) if query else "")
        connection.request("PUT", target, body, headers)
        answer = connection.getresponse()
        said = answer.read()
        if answer.status not in allowed:
            sys.exit(f"{target}: {answer.status} {said[:300]}")

    put(root, b"", {"restype": "container"} if kind == "azure" else {}, (200, 201, 409))
    for folder, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(folder, name)
            key = f"{prefix}/{os.path.relpath(path, directory)}".lstrip("/")
            with open(path, "rb") as file:
                put(f"{root}/{key}", file.read(), {}, (200, 201))


main(*sys.argv[1:])
