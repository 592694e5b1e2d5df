import { Agent, createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http';
import { pipeline } from 'node:stream';
import { listenLocally } from './local-server.ts';

export interface AuthorizingProxy {
  /** Origin of the proxy. A service behind it must list this in ALLOWED_ORIGINS. */
  readonly url: string;
  /** Sets the target of requests and the bearer token that each of them gets. */
  setDestination(target: string, token: string): void;
  close(): Promise<void>;
}

interface Destination {
  target: URL;
  token: string;
}

/** Headers of one connection (RFC 9110, 7.6.1). node:http sets its own. */
const hopByHop = new Set(['connection', 'keep-alive']);

type Pair = [name: string, value: string];

/** Returns the headers with their spelling, order, and repetitions, without those of the connection. */
function filterEndToEndHeaders(rawHeaders: readonly string[]): Pair[] {
  const pairs: Pair[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) pairs.push([rawHeaders[i] ?? '', rawHeaders[i + 1] ?? '']);
  return pairs.filter(([name]) => !hopByHop.has(name.toLowerCase()));
}

/**
 * Replaces the proxy's own host name with that of the service. Any other host is forwarded unchanged, so that the
 * service checks it.
 */
function buildForwardedHeaders(rawHeaders: readonly string[], ownHost: string, { target, token }: Destination): Pair[] {
  const pairs = filterEndToEndHeaders(rawHeaders).map(([name, value]): Pair => {
    const isOwnHost = name.toLowerCase() === 'host' && value === ownHost;
    return [name, isOwnHost ? target.host : value];
  });
  return [...pairs, ['Authorization', `Bearer ${token}`]];
}

/** Starts a reverse proxy for clients that cannot send a credential. */
export async function startAuthorizingProxy(): Promise<AuthorizingProxy> {
  const agent = new Agent({ keepAlive: true });
  let destination: Destination | undefined;

  function forward(message: IncomingMessage, response: ServerResponse): void {
    if (!destination) {
      response.writeHead(503).end();
      return;
    }
    const outgoing = send({
      agent,
      host: destination.target.hostname,
      port: destination.target.port,
      method: message.method,
      path: message.url,
      setHost: false,
      headers: buildForwardedHeaders(message.rawHeaders, host, destination).flat(),
    });
    outgoing.once('response', (upstreamResponse) => {
      response.writeHead(upstreamResponse.statusCode ?? 502, filterEndToEndHeaders(upstreamResponse.rawHeaders).flat());
      // Either side may disconnect during the response. `pipeline` then closes the other side.
      pipeline(upstreamResponse, response, () => undefined);
    });
    outgoing.once('error', () => response.destroy());
    response.once('close', () => {
      if (!response.writableFinished) outgoing.destroy();
    });
    message.pipe(outgoing);
  }

  const server = createServer(forward);
  const local = await listenLocally(server);
  const { host } = new URL(local.url);
  return {
    url: local.url,
    setDestination: (target, token) => {
      destination = { target: new URL(target), token };
    },
    close: async () => {
      agent.destroy();
      await local.close();
    },
  };
}
