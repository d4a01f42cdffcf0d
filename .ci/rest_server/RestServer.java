import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.ee10.servlet.FilterHolder;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.http.UriCompliance;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.handler.ContextHandlerCollection;

/**
 * Java Iceberg's REST catalogs, on this machine only, on a port that it prints.
 *
 * <p>Each line of the input adds a catalog: its path, then NAME=VALUE properties, with tabs between
 * them; the path is printed once the catalog is there. The end of the input ends the server.
 */
public class RestServer {
  public static void main(String[] arguments) throws Exception {
    var catalogs = new ContextHandlerCollection();
    var server = new Server(new InetSocketAddress("127.0.0.1", 0));
    // Names of tables may contain slashes and percent signs.
    for (var connector : server.getConnectors()) {
      connector
          .getConnectionFactory(HttpConnectionFactory.class)
          .getHttpConfiguration()
          .setUriCompliance(UriCompliance.UNSAFE);
    }
    server.setHandler(catalogs);
    server.start();
    System.out.println(server.getURI().getPort());
    var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      String[] parts = line.split("\t");
      var context = new ServletContextHandler(ServletContextHandler.NO_SESSIONS);
      context.setContextPath(parts[0]);
      context.getServletHandler().setDecodeAmbiguousURIs(true);
      context.addServlet(new ServletHolder(servlet(parts)), "/*");
      context.addFilter(new FilterHolder(RestServer::withoutContext), "/*", null);
      catalogs.addHandler(context);
      context.start();
      System.out.println(parts[0]);
    }
    System.exit(0);
  }

  /** The servlet routes by the whole path of a request. */
  private static void withoutContext(
      ServletRequest request, ServletResponse response, FilterChain chain)
      throws IOException, ServletException {
    var of = (HttpServletRequest) request;
    chain.doFilter(
        new HttpServletRequestWrapper(of) {
          @Override
          public String getRequestURI() {
            return of.getRequestURI().substring(of.getContextPath().length());
          }
        },
        response);
  }

  private static RESTCatalogServlet servlet(String[] parts) {
    Map<String, String> properties = new HashMap<>();
    for (int i = 1; i < parts.length; i++) {
      int equals = parts[i].indexOf('=');
      properties.put(parts[i].substring(0, equals), parts[i].substring(equals + 1));
    }
    var catalog = CatalogUtil.buildIcebergCatalog("backend", properties, new Configuration());
    return new RESTCatalogServlet(new RESTCatalogAdapter(catalog));
  }
}
