#!/usr/bin/env bash
# Fetches the servers that tests start: S3 (a jar, with Maven), Azure (with npm), PostgreSQL and
# MariaDB; in the nightly profile also HDFS (jars) and Google Cloud Storage (built with Go).
#
# What is there is left alone. As root on Debian and Ubuntu it installs what lacks: Maven, a JDK, npm,
# the databases. Fails, after a line for each, if something cannot be had; tests that need it are skipped.
set -uo pipefail
cd "$(dirname "$0")/.."

has() { command -v "$1" >/dev/null; }
has_mariadb() { has mariadb-install-db && has my_print_defaults; }
has_postgresql() { has initdb || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; }

install() {
  [ "$(id -u)" = 0 ] && has apt-get || return
  export DEBIAN_FRONTEND=noninteractive
  echo "servers.sh: installs $*"
  { timeout 120 apt-get update -qq && timeout 600 apt-get install -y -qq "$@"; } >/dev/null 2>&1
}

fetch_s3mock() {
  local version=5.2.0 folder=.cache/java
  local jar=s3mock-$version-exec.jar
  [ -f "$folder/$jar" ] && return
  has mvn || return
  # Into a folder of its own first, so that an interrupted copy is not taken for the jar.
  timeout 300 mvn --batch-mode --quiet -Dstyle.color=never dependency:copy \
    -Dartifact=com.adobe.testing:s3mock:$version:jar:exec \
    -DoutputDirectory="$PWD/$folder/incomplete-s3mock" >/dev/null 2>&1 &&
    mv "$folder/incomplete-s3mock/$jar" "$folder/$jar" && rmdir "$folder/incomplete-s3mock"
}

fetch_azurite() {
  local version=3.35.0 folder=.cache/azurite
  [ -d "$folder/node_modules/azurite" ] && return
  has npm || return
  # Into a folder of its own first, so that an interrupted copy is not taken for the server.
  rm -rf "$folder-incomplete"
  timeout 300 npm install --silent --no-audit --no-fund --prefix "$folder-incomplete" \
    "azurite@$version" >/dev/null 2>&1 && rm -rf "$folder" && mv "$folder-incomplete" "$folder"
}

fetch_hdfs() {
  local folder=.cache/java/hdfs-3.4.2
  [ -d "$folder" ] && return
  has mvn || return
  rm -rf "$folder.incomplete"
  timeout 600 mvn --batch-mode --quiet -Dstyle.color=never -f .ci/hdfs_server/pom.xml \
    dependency:copy-dependencies -DoutputDirectory="$PWD/$folder.incomplete" >/dev/null 2>&1 &&
    mv "$folder.incomplete" "$folder"
}

# It is built for minutes.
fetch_gcs() {
  [ -x .cache/go/fake-gcs-server ] && return
  has go || return
  GOBIN="$PWD/.cache/go" timeout 1800 \
    go install github.com/fsouza/fake-gcs-server@v1.56.1 >/dev/null 2>&1
}

packages=()
has java || packages+=(openjdk-17-jdk-headless)
has mvn || packages+=(maven)
has npm || packages+=(npm)
has_postgresql || packages+=(postgresql)
has_mariadb || packages+=(mariadb-server-core mariadb-client-core)
[ ${#packages[@]} = 0 ] || install "${packages[@]}"

lacking=0
say_lacking() { echo "servers.sh: $1" >&2; lacking=1; }
has java || say_lacking "no JDK (17 or later)"
has_postgresql || say_lacking "no PostgreSQL: initdb is not installed"
has_mariadb || say_lacking "no MariaDB: mariadb-install-db is not installed"
fetch_s3mock || say_lacking "no S3 server: Maven is not installed, or could not fetch it"
fetch_azurite || say_lacking "no Azure server: npm is not installed, or could not fetch it"
if [ "${ICEBERGDS_PROFILE:-}" = nightly ]; then
  fetch_hdfs || say_lacking "no HDFS cluster: Maven is not installed, or could not fetch it"
  fetch_gcs || say_lacking "no GCS server: Go is not installed, or could not build it"
fi
exit $lacking
