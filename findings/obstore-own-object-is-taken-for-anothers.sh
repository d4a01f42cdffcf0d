#!/usr/bin/env bash
# obstore (Rust's object_store) says of its own successful conditional write that the object "already
# exists", if the first answer is a 500, or if the connection ends before an answer.
#
# `put(..., mode="create")` sends `If-None-Match: *`. Neither says whether the write
# took effect; the client repeats the request by itself, the store has the object of the first one and
# answers 412, and the caller gets AlreadyExistsError: as if somebody else had won. A table format
# that commits by creating a file would take its own commit for that of another writer, and repeat it.
# With `retry_config={"max_retries": 0}` the 500 itself is the error.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet obstore==0.12.1

"$folder/venv/bin/python" - <<'PY' | tee "$folder/seen"
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import obstore
from obstore.store import S3Store


class Store(BaseHTTPRequestHandler):
    """Creates an object if it is absent; each first answer is as `ANSWER` says."""

    protocol_version = "HTTP/1.1"
    objects: dict[str, bytes] = {}
    answers: list[int] = []
    first = 500

    def log_message(self, *_):
        pass

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        created = self.objects.setdefault(self.path, body) is body
        is_first = not self.answers
        self.answers.append(200 if created else 412)
        if is_first and self.first == 0:
            self.close_connection = True
            return
        self.send_response(self.first if is_first else self.answers[-1])
        self.send_header("Content-Length", "0")
        self.send_header("ETag", '"1"')
        self.end_headers()


server = ThreadingHTTPServer(("127.0.0.1", 0), Store)
threading.Thread(target=server.serve_forever, daemon=True).start()
print("obstore", obstore.__version__)
for name, first, retries in (("500", 500, {}), ("none", 0, {}), ("500", 500, {"max_retries": 0})):
    Store.objects.clear()
    Store.answers.clear()
    Store.first = first
    store = S3Store(
        "bucket",
        endpoint=f"http://127.0.0.1:{server.server_port}",
        access_key_id="me",
        secret_access_key="secret",
        region="us-east-1",
        virtual_hosted_style_request=False,
        client_options={"allow_http": True},
        **({"retry_config": retries} if retries else {}),
    )
    try:
        obstore.put(store, "v2.metadata.json", b"mine", mode="create")
        outcome = "succeeds"
    except Exception as error:
        outcome = type(error).__name__
    stored = [value.decode() for value in Store.objects.values()]
    print(f"first answer {name}, {retries or 'retries by default'}: {outcome}; stored {stored}, "
          f"the store's view {Store.answers}")
PY

diff "$folder/seen" - <<'SEEN'
obstore 0.12.1
first answer 500, retries by default: AlreadyExistsError; stored ['mine'], the store's view [200, 412]
first answer none, retries by default: AlreadyExistsError; stored ['mine'], the store's view [200, 412]
first answer 500, {'max_retries': 0}: GenericError; stored ['mine'], the store's view [200]
SEEN
echo "as seen before"
