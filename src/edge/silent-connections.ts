import type { Server } from 'node:http';

/**
 * Closes connections on which nothing has moved for `silentMs`, found after twice that at most: idle ones, and those
 * whose client does not take what was written in that time. The timers of `node:http` would be set anew twice with every
 * request.
 */
export function closeSilentConnections(server: Server, silentMs: number): void {
  server.on('connection', (socket) => {
    let before = 0;
    const timer = setInterval(() => {
      const moved = socket.bytesRead + socket.bytesWritten;
      if (moved === before) socket.destroy();
      before = moved;
    }, silentMs);
    timer.unref();
    socket.on('close', () => clearInterval(timer));
  });
}
