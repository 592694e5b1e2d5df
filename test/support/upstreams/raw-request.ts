import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { text } from 'node:stream/consumers';

export type RawReply = { status: number; headers: http.IncomingHttpHeaders; text: string };

/** Sends one request whose headers are all set by the test, including those that fetch sets or normalizes. */
export async function sendRawRequest(
  url: string,
  options: http.RequestOptions = {},
  body?: string | Buffer,
): Promise<RawReply> {
  const request = http.request(url, options);
  request.end(body);
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  return { status: response.statusCode ?? 0, headers: response.headers, text: await text(response) };
}

/** Sends bytes over a new connection and returns the complete response when the server has closed the connection. */
export async function sendUntilClosed(url: string, bytes: string | Buffer): Promise<string> {
  const socket = net.connect(Number(new URL(url).port), '127.0.0.1');
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
  });
  socket.write(bytes);
  await once(socket, 'close');
  return received;
}
