import type { Server } from 'node:http';

/**
 * Closes connections without traffic for `silentMs`, after twice that at the latest: idle ones, and those whose client
 * does not read what was written. The timers of `node:http` would be set twice for every request.
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
