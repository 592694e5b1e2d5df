import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** Opens a connection that has received its response and stays open, unless the server closes it. */
export async function openIdleConnection(url: string, localAddress: string): Promise<Socket> {
  const { host, port } = new URL(url);
  const socket = connect({ port: Number(port), host: '127.0.0.1', localAddress });
  socket.on('error', () => undefined);
  socket.write(`GET /livez HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  await Promise.race([once(socket, 'data'), once(socket, 'close')]);
  return socket.resume();
}
