import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** A name node and a data node in one process: HdfsServer RPC_PORT HTTP_PORT DIRECTORY. */
public class HdfsServer {
  public static void main(String[] arguments) throws Exception {
    Configuration settings = new Configuration();
    settings.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, arguments[2]);
    settings.set("dfs.permissions.enabled", "false");
    // So that listings have several pages.
    settings.set("dfs.ls.limit", "3");
    MiniDFSCluster cluster =
        new MiniDFSCluster.Builder(settings)
            .numDataNodes(1)
            .nameNodePort(Integer.parseInt(arguments[0]))
            .nameNodeHttpPort(Integer.parseInt(arguments[1]))
            .format(true)
            .build();
    cluster.waitActive();
    System.out.println("READY");
    Thread.currentThread().join();
  }
}
