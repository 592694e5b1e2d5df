import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream';

export interface AuthorizingProxy {
  /** Its origin; a service behind it must list this in ALLOWED_ORIGINS. */
  readonly url: string;
  /** Sets the target of requests, and the bearer that each of them gets. */
  forwardTo(target: string, token: string): void;
  close(): Promise<void>;
}

interface Destination {
  target: URL;
  token: string;
}

/** Those of one connection (RFC 9110, 7.6.1); node:http says its own. */
const hopByHop = new Set(['connection', 'keep-alive']);

type Pair = [name: string, value: string];

/** The fields with their spelling, order and repetitions, less those of the connection. */
function endToEnd(rawHeaders: readonly string[]): Pair[] {
  const pairs: Pair[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) pairs.push([rawHeaders[i] ?? '', rawHeaders[i + 1] ?? '']);
  return pairs.filter(([name]) => !hopByHop.has(name.toLowerCase()));
}

/** The proxy's own name becomes the service's; any other goes on as it came, so that the service checks it. */
function forwarded(rawHeaders: readonly string[], ownHost: string, { target, token }: Destination): Pair[] {
  const pairs = endToEnd(rawHeaders).map(([name, value]): Pair => {
    const isOwnHost = name.toLowerCase() === 'host' && value === ownHost;
    return [name, isOwnHost ? target.host : value];
  });
  return [...pairs, ['Authorization', `Bearer ${token}`]];
}

/** A reverse proxy for clients that cannot send a credential. */
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
      headers: forwarded(message.rawHeaders, host, destination).flat(),
    });
    outgoing.once('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, endToEnd(answer.rawHeaders).flat());
      // Either side may leave in mid-answer; `pipeline` then closes the other.
      pipeline(answer, response, () => undefined);
    });
    outgoing.once('error', () => response.destroy());
    response.once('close', () => {
      if (!response.writableFinished) outgoing.destroy();
    });
    message.pipe(outgoing);
  }

  const server = createServer(forward);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const host = `127.0.0.1:${port}`;
  return {
    url: `http://${host}`,
    forwardTo: (target, token) => {
      destination = { target: new URL(target), token };
    },
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      agent.destroy();
      await closed;
    },
  };
}
