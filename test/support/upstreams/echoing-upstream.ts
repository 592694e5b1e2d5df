import { createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { listenLocally } from './local-server.ts';
import { formatHead } from './raw-responses.ts';

/** One request as the upstream read it. */
export type EchoedRequest = {
  /** Value of `Authorization`, or of the query parameter `api_key`. Empty without both. */
  user: string;
  /** Value of the query parameter `text`. */
  text: string;
  /** Number of earlier requests to the upstream, on all connections. */
  index: number;
};

/** Bytes to send, and the delay before them in ms. */
export type DelayedBytes = { afterMs: number; bytes: string };

export type EchoingUpstream = {
  readonly url: string;
  readonly port: number;
  /** Number of TCP connections accepted so far. */
  readonly connections: number;
  /** Number of connections that are open now. */
  readonly openSockets: number;
  readonly requests: readonly EchoedRequest[];
  /** Credentials that each connection carried, in the order of the connections. */
  readonly connectionUsers: readonly ReadonlySet<string>[];
  close(): Promise<void>;
};

/** Formats the correct response to a request: its user and its text. */
export function formatEcho({ user, text }: EchoedRequest, headers: Record<string, string | number> = {}): string {
  return formatJsonResponse(JSON.stringify({ user, text }), headers);
}

/** Formats a complete response with this JSON. */
export function formatJsonResponse(body: string, headers: Record<string, string | number> = {}): string {
  return `${formatHead('200 OK', { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...headers })}${body}`;
}

export type EchoingOptions = {
  /** Returns the bytes to send for a request. The default is its correct response. */
  respond?: (request: EchoedRequest) => readonly DelayedBytes[];
};

function parseHead(headText: string): Pick<EchoedRequest, 'user' | 'text'> {
  const { searchParams } = new URL(headText.split(' ')[1] ?? '/', 'http://upstream');
  const authorization = /^authorization: *(.*)$/im.exec(headText)?.[1]?.trim();
  return { user: authorization ?? searchParams.get('api_key') ?? '', text: searchParams.get('text') ?? '' };
}

/** Starts an upstream that echoes the user and text of a request, and may send additional unsolicited bytes. */
export async function startEchoingUpstream(options: EchoingOptions = {}): Promise<EchoingUpstream> {
  const { respond = (request) => [{ afterMs: 0, bytes: formatEcho(request) }] } = options;
  const requests: EchoedRequest[] = [];
  const connectionUsers: Set<string>[] = [];

  async function sendResponse(socket: Socket, request: EchoedRequest): Promise<void> {
    for (const { afterMs, bytes } of respond(request)) {
      if (afterMs > 0) await delay(afterMs);
      if (!socket.writable) return;
      socket.write(bytes);
    }
  }

  const server = createServer((socket) => {
    socket.setNoDelay(true);
    const users = new Set<string>();
    connectionUsers.push(users);
    // Clients that end the connection are the subject of these tests.
    socket.on('error', () => undefined);
    let pending = '';
    socket.on('data', (data) => {
      pending += data.toString('latin1');
      for (let end = pending.indexOf('\r\n\r\n'); end >= 0; end = pending.indexOf('\r\n\r\n')) {
        const headText = pending.slice(0, end);
        const next = end + 4 + Number(/^content-length: *(\d+)/im.exec(headText)?.[1] ?? 0);
        if (pending.length < next) return;
        pending = pending.slice(next);
        const request = { ...parseHead(headText), index: requests.length };
        users.add(request.user);
        requests.push(request);
        void sendResponse(socket, request);
      }
    });
  });
  const { url, port, sockets, close } = await listenLocally(server);
  return {
    url,
    port,
    get connections() {
      return connectionUsers.length;
    },
    get openSockets() {
      return sockets.size;
    },
    requests,
    connectionUsers,
    close,
  };
}
