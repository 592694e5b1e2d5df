import type { Server } from 'node:http';
import { runningNow } from '../domain/work/running-time.ts';

/**
 * Closes connections without traffic for `silentMs`, after twice that at the latest: idle ones, and those whose client
 * does not read what was written. When this process was stopped, its clients get that time again. The timers of
 * `node:http` would be set twice for every request.
 */
export function closeSilentConnections(server: Server, silentMs: number): void {
  server.on('connection', (socket) => {
    let before = 0;
    let since = runningNow();
    const timer = setInterval(() => {
      const moved = socket.bytesRead + socket.bytesWritten;
      const now = runningNow();
      // Timers may be a millisecond early.
      if (moved === before && now - since >= silentMs - 1) socket.destroy();
      before = moved;
      since = now;
    }, silentMs);
    timer.unref();
    socket.on('close', () => clearInterval(timer));
  });
}
