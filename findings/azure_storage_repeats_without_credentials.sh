#!/usr/bin/env bash
# Azure's client of blobs repeats a request that has no credentials three times, after waits of
# 84 seconds together: a program whose environment has none seems to hang before it says so.
#
# `ClientAuthenticationError` of the credential comes before anything is sent, and no repetition helps.
# azure-core's own RetryPolicy, which Azure's other clients have, passes it on at once; the policies
# of azure-storage-blob count it as any other AzureError.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet \
    azure-storage-blob==12.31.1 azure-identity==1.27.0 azure-core==1.41.0

env -u AZURE_CLIENT_ID -u AZURE_TENANT_ID "$folder/venv/bin/python" - <<'PY' 2>/dev/null | tee "$folder/seen"
from importlib.metadata import version

from azure.core import PipelineClient
from azure.core.exceptions import ClientAuthenticationError
from azure.core.pipeline.policies import BearerTokenCredentialPolicy, RetryPolicy
from azure.core.rest import HttpRequest
from azure.identity import EnvironmentCredential
from azure.storage.blob import BlobClient, ExponentialRetry

for package in ("azure-storage-blob", "azure-identity", "azure-core"):
    print(package, version(package))


class Counting:
    """Credentials of an environment that has none."""

    def __init__(self):
        self.asked, self.own = 0, EnvironmentCredential()

    def get_token(self, *scopes, **options):
        self.asked += 1
        return self.own.get_token(*scopes, **options)


def attempts(request):
    credential = Counting()
    try:
        request(credential)
    except ClientAuthenticationError:
        return f"{credential.asked} attempts, then ClientAuthenticationError"


def read(credential):
    # Without the waits of the default policy, which are shown below.
    policy = ExponentialRetry(initial_backoff=0, increment_base=0, random_jitter_range=0)
    address = "https://account.blob.core.windows.net"
    BlobClient(address, "container", "blob", credential=credential, retry_policy=policy).exists()


def get(credential):
    policies = [RetryPolicy(), BearerTokenCredentialPolicy(credential, "https://a.example/.default")]
    PipelineClient("https://a.example", policies=policies).send_request(
        HttpRequest("GET", "https://a.example/")
    )


print("client of blobs:", attempts(read))
print("azure-core:", attempts(get))
default = ExponentialRetry(random_jitter_range=0)
counts = range(1, default.total_retries + 1)
waits = [default.get_backoff_time({"count": count}) for count in counts]
print("seconds that the default policy waits:", waits, "each up to 3 more or less")
PY

diff "$folder/seen" - <<'SEEN'
azure-storage-blob 12.31.1
azure-identity 1.27.0
azure-core 1.41.0
client of blobs: 4 attempts, then ClientAuthenticationError
azure-core: 1 attempts, then ClientAuthenticationError
seconds that the default policy waits: [18.0, 24.0, 42.0] each up to 3 more or less
SEEN
echo "as seen before"
