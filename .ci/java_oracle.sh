# Sets up Java Iceberg, against which the interop tests and the benchmarks compare.
#
# Source it from the root of the repository:  . .ci/java_oracle.sh
# It leaves alone what is there already, and exports
#   ICEBERGDS_JAVA_PYTHON   an interpreter with PySpark 4.1 (made in .venv-java unless set)
#   ICEBERGDS_ICEBERG_JAR   Java Iceberg's runtime for it, fetched with Maven (in .cache/java)

icebergds_java_oracle() {
    iceberg=1.12.0
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

    jar=$artifact-$iceberg.jar
    ICEBERGDS_ICEBERG_JAR=${ICEBERGDS_ICEBERG_JAR:-$root/.cache/java/$jar}
    if [ ! -f "$ICEBERGDS_ICEBERG_JAR" ]; then
        command -v mvn >/dev/null || { echo "java_oracle.sh: Maven is needed to fetch $jar" >&2; return 1; }
        # Into a folder of its own first, so that an interrupted copy is not taken for the jar.
        folder=$(dirname "$ICEBERGDS_ICEBERG_JAR")
        mvn --batch-mode --quiet -Dstyle.color=never dependency:copy \
            -Dartifact="org.apache.iceberg:$artifact:$iceberg" \
            -DoutputDirectory="$folder/incomplete" || return 1
        mv "$folder/incomplete/$jar" "$ICEBERGDS_ICEBERG_JAR" && rmdir "$folder/incomplete" ||
            return 1
    fi
    export ICEBERGDS_JAVA_PYTHON ICEBERGDS_ICEBERG_JAR
}

icebergds_java_oracle
