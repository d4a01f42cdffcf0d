// An OAuth2 server of short-lived tokens: node tokens.mjs PACKAGE PORT SECONDS SECRET
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [folder, port, seconds, secret] = process.argv.slice(2);
const entry = pathToFileURL(join(folder, 'dist', 'index.mjs'));
const { OAuth2Server } = await import(entry);
const server = new OAuth2Server();
await server.issuer.keys.generate('RS256');
server.service.on('beforeTokenSigning', (token) => {
  token.payload.exp = Math.floor(Date.now() / 1000) + Number(seconds);
  token.payload.sub = 'icebergds';
});
server.service.on('beforeResponse', (response, request) => {
  const basic = (request.headers.authorization ?? '').replace('Basic ', '');
  const given = request.body.client_secret ?? Buffer.from(basic, 'base64').toString().split(':')[1];
  if (given !== secret) {
    response.statusCode = 401;
    response.body = { error: 'invalid_client' };
  } else if (response.body) {
    response.body.expires_in = Number(seconds);
  }
});
await server.start(Number(port), 'localhost');
