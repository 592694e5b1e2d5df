import { createServer, type Socket } from 'node:net';
import { setImmediate as immediate } from 'node:timers/promises';
import { type LocalServer, listenLocally } from '../upstreams/local-server.ts';

/** A response to send: its pieces, each sent in its own turn of the event loop, and the event after the last one. */
export type Script = { pieces: readonly Buffer[]; ending?: 'close' | 'reset' | undefined };

/** A script that waits for its request. */
export type PreparedScript = {
  /** Path of the request that starts it. */
  path: string;
  /** Resolves when the request has arrived. */
  started: Promise<void>;
  /** Resolves with the connection when everything was written or the client has disconnected. */
  played: Promise<Socket>;
};

export type ScriptedUpstream = LocalServer & { prepare(script: Script): PreparedScript };

/** Turns of the event loop in which the client reads the bytes before a reset, which would discard them. */
const turnsBeforeReset = 10;

/** Starts an upstream that sends a prepared response to each request, and ignores request bodies. */
export async function startScriptedUpstream(): Promise<ScriptedUpstream> {
  const scripts = new Map<string, { script: Script; onStarted: () => void; onPlayed: (socket: Socket) => void }>();
  let count = 0;
  const server = createServer({ noDelay: true }, (socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (data) => {
      const path = /^[A-Z]+ (\/\d+) /.exec(data.toString('latin1', 0, 100))?.[1];
      const prepared = path === undefined ? undefined : scripts.get(path);
      if (!path || !prepared) return;
      scripts.delete(path);
      prepared.onStarted();
      void play(prepared.script, socket).then(() => prepared.onPlayed(socket));
    });
  });
  const local = await listenLocally(server);
  return {
    ...local,
    prepare(script) {
      const path = `/${count++}`;
      const { promise: played, resolve: onPlayed } = Promise.withResolvers<Socket>();
      const { promise: started, resolve: onStarted } = Promise.withResolvers<void>();
      scripts.set(path, { script, onStarted, onPlayed });
      return { path, started, played };
    },
  };
}

async function play({ pieces, ending }: Script, socket: Socket): Promise<void> {
  const [last, ...others] = pieces.toReversed();
  for (const piece of others.reverse()) {
    if (!socket.writable) return;
    socket.write(piece);
    await immediate();
  }
  if (last && ending === 'close') socket.end(last);
  else if (last) socket.write(last);
  else if (ending === 'close') socket.end();
  if (ending !== 'reset') return;
  for (let turns = 0; turns < turnsBeforeReset; turns++) await immediate();
  socket.resetAndDestroy();
}
