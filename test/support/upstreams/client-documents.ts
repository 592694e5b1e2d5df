import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { createServer, type Server } from 'node:https';
import tls from 'node:tls';
import type { Resolve } from '@toolhost/safe-http/connector';
import { type EgressAllow, parseEgressAllow } from '@toolhost/safe-http/egress';
import type { Json } from '../toolhost/toolhost.ts';
import { createSelfSigned } from './certificate.ts';
import { listenOnWebPort } from './listener.ts';
import type { CannedResponse } from './recording-upstream.ts';

/** A website on which clients publish their metadata documents, at a public name that resolves to this machine. */
export type ClientDocumentSite = {
  readonly port: number;
  /** Resolver that knows only this site, and the site's address as a public one. */
  readonly runtimeOptions: { resolve: Resolve; extraPublicAddresses: EgressAllow };
  /** Serves a response at a path and returns its https URL. With 'hang', the site never responds. */
  serve(path: string, response: CannedResponse | 'hang'): string;
  /** Serves a client's metadata document and returns its client id. */
  publish(path: string, document?: Json, headers?: Record<string, string>): string;
  /** Number of connections so far, including those without a request. */
  readonly connections: number;
  /** All requests so far. */
  readonly requests: readonly IncomingMessage[];
  /** Removes and returns the paths requested since the last call. */
  take(): string[];
  close(): Promise<void>;
};

const hostname = 'agents.example.com';

export async function startClientDocuments(): Promise<ClientDocumentSite> {
  const responses = new Map<string, CannedResponse | 'hang'>();
  const requestedPaths: string[] = [];
  const requests: IncomingMessage[] = [];
  let connections = 0;
  const identity = createSelfSigned(hostname);
  const defaultCertificates = tls.getCACertificates('default');
  tls.setDefaultCACertificates([...defaultCertificates, identity.cert]);
  const server: Server = createServer(identity, (request, response) => {
    const path = request.url ?? '';
    requestedPaths.push(path);
    requests.push(request);
    const cannedResponse = responses.get(path) ?? { status: 404 };
    if (cannedResponse === 'hang') return;
    const { status = 200, headers = {}, body = '' } = cannedResponse;
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text);
  });
  server.on('connection', () => {
    connections += 1;
  });
  const port = await listenOnWebPort(server);
  const origin = `https://${hostname}:${port}`;

  const serve: ClientDocumentSite['serve'] = (path, response) => {
    responses.set(path, response);
    return origin + path;
  };
  return {
    port,
    get connections() {
      return connections;
    },
    requests,
    runtimeOptions: {
      resolve: (name, callback) => {
        if (name === hostname) callback(null, [{ address: '127.0.0.1', family: 4 }]);
        else callback(Object.assign(new Error(`${name} is not known`), { code: 'ENOTFOUND' }), []);
      },
      extraPublicAddresses: parseEgressAllow(`127.0.0.1:${port}`),
    },
    serve,
    publish(path, document = {}, headers = {}) {
      const defaultDocument = {
        client_id: origin + path,
        client_name: 'Documented agent',
        redirect_uris: ['http://localhost/callback'],
      };
      return serve(path, { headers, body: { ...defaultDocument, ...document } });
    },
    take: () => requestedPaths.splice(0),
    async close() {
      tls.setDefaultCACertificates(defaultCertificates);
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
