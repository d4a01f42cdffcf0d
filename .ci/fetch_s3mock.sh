#!/usr/bin/env bash
# Fetches the S3 server of the tests with Maven, into .cache/java; a fetched one is left alone.
set -euo pipefail
cd "$(dirname "$0")/.."

jar=s3mock-5.2.0-exec.jar
folder=.cache/java
[ -f "$folder/$jar" ] && exit
# Into a folder of its own first, so that an interrupted copy is not taken for the jar.
mvn --batch-mode --quiet -Dstyle.color=never dependency:copy \
  -Dartifact=com.adobe.testing:s3mock:5.2.0:jar:exec -DoutputDirectory="$PWD/$folder/incomplete-s3mock"
mv "$folder/incomplete-s3mock/$jar" "$folder/$jar"
rmdir "$folder/incomplete-s3mock"
