# Sets up Java Iceberg, against which the interop tests and the benchmarks compare.
#
# Source it from the root of the repository:  . .ci/java_oracle.sh
# It leaves alone what is there already, and exports
#   ICEBERGDS_JAVA_PYTHON   an interpreter with PySpark 4.1 (made in .venv-java unless set)
#   ICEBERGDS_ICEBERG_JAR   Java Iceberg's runtime for it, fetched with Maven (in .cache/java)
#   ICEBERGDS_JDBC_DRIVERS  the folder of the drivers that its JDBC catalog needs, fetched likewise
#   ICEBERGDS_AWS_JAR       its bundle of AWS, fetched likewise if ICEBERGDS_WITH_AWS is set
#   ICEBERGDS_S3TABLES_JARS the folder of its catalog of S3 Tables, fetched with the bundle
#   ICEBERGDS_GCP_JAR       its bundle of Google Cloud, fetched in the nightly profile
#   ICEBERGDS_AZURE_JAR     its bundle of Azure, likewise

# Fetches an artifact, group:name:version, into the jar of a path.
icebergds_fetch() {
    [ -f "$2" ] && return
    command -v mvn >/dev/null || { echo "java_oracle.sh: Maven is needed to fetch $1" >&2; return 1; }
    # Into a folder of its own first, so that an interrupted copy is not taken for the jar.
    folder=$(dirname "$2")/incomplete
    mvn --batch-mode --quiet -Dstyle.color=never dependency:copy -Dartifact="$1" \
        -DoutputDirectory="$folder" || return 1
    mv "$folder/$(basename "$2")" "$2" && rmdir "$folder"
}

# Fetches what a project depends on into a folder.
icebergds_fetch_all() {
    [ -d "$2" ] && return
    command -v mvn >/dev/null || { echo "java_oracle.sh: Maven is needed for $1" >&2; return 1; }
    rm -rf "$2.incomplete"
    mvn --batch-mode --quiet -Dstyle.color=never -f "$1" dependency:copy-dependencies \
        -DoutputDirectory="$2.incomplete" || return 1
    mv "$2.incomplete" "$2"
}

icebergds_java_oracle() {
    iceberg=1.12.0
    sqlite=3.50.3.0
    postgresql=42.7.4
    mariadb=3.5.6
    s3tables=0.1.8
    # The newest that can be had; what they have of Iceberg is in the runtime too.
    gcp=1.11.0
    azure=1.10.0
    artifact=iceberg-spark-runtime-4.1_2.13
    root=$PWD
    if [ ! -d "$root/spark_tests/oracles" ]; then
        echo "java_oracle.sh: source it from the root of the repository, not $root" >&2
        return 1
    fi
    command -v java >/dev/null || { echo "java_oracle.sh: a JDK (17 or later) is needed" >&2; return 1; }

    ICEBERGDS_JAVA_PYTHON=${ICEBERGDS_JAVA_PYTHON:-$root/.venv-java/bin/python}
    if [ ! -x "$ICEBERGDS_JAVA_PYTHON" ]; then
        if [ "$ICEBERGDS_JAVA_PYTHON" != "$root/.venv-java/bin/python" ]; then
            echo "java_oracle.sh: no interpreter at ICEBERGDS_JAVA_PYTHON" >&2
            return 1
        fi
        "${PYTHON:-python3}" -m venv "$root/.venv-java" || return 1
        "$ICEBERGDS_JAVA_PYTHON" -m pip install --quiet "pyspark==4.1.*" "pyarrow>=21" || return 1
    fi

    ICEBERGDS_ICEBERG_JAR=${ICEBERGDS_ICEBERG_JAR:-$root/.cache/java/$artifact-$iceberg.jar}
    icebergds_fetch "org.apache.iceberg:$artifact:$iceberg" "$ICEBERGDS_ICEBERG_JAR" || return 1
    ICEBERGDS_JDBC_DRIVERS=${ICEBERGDS_JDBC_DRIVERS:-$root/.cache/java}
    icebergds_fetch org.xerial:sqlite-jdbc:$sqlite \
        "$ICEBERGDS_JDBC_DRIVERS/sqlite-jdbc-$sqlite.jar" || return 1
    icebergds_fetch org.postgresql:postgresql:$postgresql \
        "$ICEBERGDS_JDBC_DRIVERS/postgresql-$postgresql.jar" || return 1
    icebergds_fetch org.mariadb.jdbc:mariadb-java-client:$mariadb \
        "$ICEBERGDS_JDBC_DRIVERS/mariadb-java-client-$mariadb.jar" || return 1
    if [ -n "${ICEBERGDS_WITH_AWS:-}" ]; then
        ICEBERGDS_AWS_JAR=${ICEBERGDS_AWS_JAR:-$root/.cache/java/iceberg-aws-bundle-$iceberg.jar}
        icebergds_fetch org.apache.iceberg:iceberg-aws-bundle:$iceberg "$ICEBERGDS_AWS_JAR" ||
            return 1
        ICEBERGDS_S3TABLES_JARS=${ICEBERGDS_S3TABLES_JARS:-$root/.cache/java/s3tables-catalog-$s3tables}
        icebergds_fetch_all .ci/s3tables_catalog/pom.xml "$ICEBERGDS_S3TABLES_JARS" || return 1
        export ICEBERGDS_AWS_JAR ICEBERGDS_S3TABLES_JARS
    fi
    if [ "${ICEBERGDS_PROFILE:-}" = nightly ]; then
        ICEBERGDS_GCP_JAR=${ICEBERGDS_GCP_JAR:-$root/.cache/java/iceberg-gcp-bundle-$gcp.jar}
        icebergds_fetch "org.apache.iceberg:iceberg-gcp-bundle:$gcp" "$ICEBERGDS_GCP_JAR" ||
            return 1
        ICEBERGDS_AZURE_JAR=${ICEBERGDS_AZURE_JAR:-$root/.cache/java/iceberg-azure-bundle-$azure.jar}
        icebergds_fetch "org.apache.iceberg:iceberg-azure-bundle:$azure" "$ICEBERGDS_AZURE_JAR" ||
            return 1
        export ICEBERGDS_GCP_JAR ICEBERGDS_AZURE_JAR
    fi
    export ICEBERGDS_JAVA_PYTHON ICEBERGDS_ICEBERG_JAR ICEBERGDS_JDBC_DRIVERS
}

icebergds_java_oracle
