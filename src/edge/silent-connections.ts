import type { Server } from 'node:http';
import { runningNow } from '../domain/work/running-time.ts';

/**
 * Closes connections without traffic for `silentMs`: idle ones, and those whose client does not read what was written.
 * They are closed after twice that at the latest, or three times that where this process was stopped meanwhile. The
 * timers of `node:http` would be set twice for every request.
 */
export function closeSilentConnections(server: Server, silentMs: number): void {
  server.on('connection', (socket) => {
    let before = 0;
    let since = runningNow();
    const timer = setInterval(() => {
      const moved = socket.bytesRead + socket.bytesWritten;
      const now = runningNow();
      if (moved !== before) since = now;
      // Timers may be a millisecond early.
      else if (now - since >= silentMs - 1) socket.destroy();
      before = moved;
    }, silentMs);
    timer.unref();
    socket.on('close', () => clearInterval(timer));
  });
}
