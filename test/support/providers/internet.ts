import assert from 'node:assert/strict';
import { createServer as createHttpServer, type IncomingMessage, request as sendRequest } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect, type Socket } from 'node:net';
import { buffer, text } from 'node:stream/consumers';
import tls from 'node:tls';
import { createSelfSigned } from '../upstreams/certificate.ts';
import { listenLocally } from '../upstreams/local-server.ts';

/** A request that a site received. */
export type SiteRequest = {
  method: string;
  url: URL;
  headers: IncomingMessage['headers'];
  body: string;
};

/** A response of a site. An object is sent as JSON. */
export type SiteResponse = { status?: number; headers?: Record<string, string>; body?: object | string };

/** Responds to the requests of one host. An assertion that fails is reported to the test. */
export type Site = (request: SiteRequest) => SiteResponse;

/** Public hosts by their real names, served over TLS on this machine, behind a proxy that the service uses. */
export type Internet = {
  /** Value of EGRESS_PROXY. */
  readonly proxyUrl: string;
  /** Requests that the service sent since the last call, oldest first. */
  takeRequests(): SiteRequest[];
  /** Sends the requests of a browser to the sites. */
  fetch: typeof fetch;
  /** Throws the first error of a site. */
  check(): void;
  close(): Promise<void>;
};

/** Starts the sites, by host. A host may begin with `*.`, for one label. */
export async function startInternet(sites: Record<string, Site>): Promise<Internet> {
  const certificates = new Map(Object.keys(sites).map((host) => [host, createSelfSigned(host)]));
  const defaultCertificates = tls.getCACertificates('default');
  tls.setDefaultCACertificates([...defaultCertificates, ...[...certificates.values()].map(({ cert }) => cert)]);
  const findPattern = (host: string) =>
    Object.keys(sites).find((pattern) => pattern === host || pattern === host.replace(/^[^.]+/, '*'));
  let requests: SiteRequest[] = [];
  let firstError: unknown;

  async function serve(message: IncomingMessage, isFromService: boolean): Promise<SiteResponse> {
    const body = await text(message);
    const url = new URL(message.url ?? '/', `https://${message.headers.host}`);
    const site = sites[findPattern(url.hostname) ?? ''];
    const request = { method: message.method ?? '', url, headers: message.headers, body };
    if (isFromService) requests.push(request);
    try {
      assert.ok(site, `there is no site at ${url.hostname}`);
      return site(request);
    } catch (error) {
      firstError ??= error;
      return { status: 500, body: 'the site does not understand the request' };
    }
  }

  const listen =
    (isFromService: boolean) => (message: IncomingMessage, response: import('node:http').ServerResponse) => {
      void serve(message, isFromService).then(({ status = 200, headers = {}, body = '' }) => {
        const isText = typeof body === 'string';
        const type = isText ? 'text/html; charset=utf-8' : 'application/json';
        response.writeHead(status, { 'content-type': type, ...headers }).end(isText ? body : JSON.stringify(body));
      });
    };
  const contexts = new Map([...certificates].map(([host, pair]) => [host, tls.createSecureContext(pair)]));
  const [fallback] = certificates.values();
  const tlsServer = await listenLocally(
    createTlsServer(
      { ...fallback, SNICallback: (name, done) => done(null, contexts.get(findPattern(name) ?? '')) },
      listen(true),
    ),
  );
  const browserServer = await listenLocally(createHttpServer(listen(false)));
  const proxyServer = createHttpServer();
  proxyServer.on('connect', (_, client: Socket) => {
    const upstream = connect(tlsServer.port, '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      upstream.pipe(client).pipe(upstream);
    });
    for (const socket of [client, upstream]) socket.on('error', () => socket.destroy());
  });
  const proxy = await listenLocally(proxyServer);
  return {
    proxyUrl: proxy.url,
    takeRequests: () => requests.splice(0),
    fetch: (input, init) => fetchAt(browserServer.port, input, init),
    check() {
      const error = firstError;
      firstError = undefined;
      if (error !== undefined) throw error;
    },
    async close() {
      tls.setDefaultCACertificates(defaultCertificates);
      requests = [];
      await Promise.all([tlsServer.close(), browserServer.close(), proxy.close()]);
    },
  };
}

/** Sends a request of a browser for any host to a port of this machine. */
export async function fetchAt(port: number, input: string | URL | Request, init: RequestInit = {}): Promise<Response> {
  const url = new URL(String(input));
  const headers = new Headers(init.headers);
  const body = init.body === undefined || init.body === null ? undefined : String(init.body);
  if (init.body instanceof URLSearchParams) headers.set('content-type', 'application/x-www-form-urlencoded');
  headers.set('host', url.host);
  const message = await new Promise<IncomingMessage>((resolve, reject) => {
    const options = { method: init.method ?? 'GET', headers: Object.fromEntries(headers) };
    sendRequest(`http://127.0.0.1:${port}${url.pathname}${url.search}`, options, resolve).on('error', reject).end(body);
  });
  const responseHeaders = Object.entries(message.headersDistinct).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  );
  const content = await buffer(message);
  return new Response(content.length > 0 ? content : null, {
    status: message.statusCode ?? 0,
    headers: responseHeaders,
  });
}
