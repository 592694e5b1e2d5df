import { connect as connectTcp, type Socket } from 'node:net';
import type { Connect, OnSocket } from './open-socket.ts';

/**
 * Operator's proxy for all destinations that `EGRESS_ALLOW` does not name. `authorization` is a header value, if the
 * proxy requires one.
 */
export type EgressProxy = { host: string; port: number; authorization: string | undefined };

const tunnelTimeoutMs = 10_000;
const maxHeadBytes = 16 * 1024;

/** Creates an error for a failed proxy connection. `failure.ts` explains the code. */
function createProxyError(message: string): Error {
  return Object.assign(new Error(message), { code: 'EPROXY' });
}

/**
 * Connects through the proxy: a tunnel to the host and port (CONNECT; RFC 9110, 9.3.6), and TLS with the host inside
 * it. The proxy resolves the name, so it decides which addresses can be reached.
 */
export function connectThrough(proxy: EgressProxy, hostname: string, port: number, connectTls: Connect): Connect {
  return (onBytes, onSocket) => {
    const socket = connectTcp(proxy.port, proxy.host);
    let head = '';
    const fail = (error: Error) => {
      socket.destroy();
      onSocket(error);
    };
    const onError = (error: Error) => fail(createProxyError(error.message));
    const onEnd = () => fail(createProxyError('the proxy closed the connection'));
    const onData = (chunk: Buffer) => {
      head += chunk.toString('latin1');
      const headEnd = head.indexOf('\r\n\r\n');
      if (headEnd < 0 && head.length <= maxHeadBytes) return;
      socket.off('data', onData).off('error', onError).off('end', onEnd).setTimeout(0).removeAllListeners('timeout');
      const status = /^HTTP\/1\.[01] (\d{3})/.exec(head)?.[1];
      // Bytes after the proxy response would be mistaken for part of the TLS connection.
      if (status?.startsWith('2') && headEnd + 4 === head.length) startTls(socket);
      else fail(createProxyError(`the proxy responded with ${status ?? 'invalid HTTP'}`));
    };
    const startTls = (httpSocket: Socket) => {
      const onTlsSocket: OnSocket = (error, tlsSocket) => {
        if (error) fail(error);
        else onSocket(undefined, tlsSocket);
      };
      connectTls(onBytes, onTlsSocket, httpSocket);
    };
    socket.setTimeout(tunnelTimeoutMs, () => fail(createProxyError('the proxy did not respond in time')));
    socket.once('error', onError).once('end', onEnd).on('data', onData);
    const target = `${hostname}:${port}`;
    const authorization = proxy.authorization === undefined ? '' : `Proxy-Authorization: ${proxy.authorization}\r\n`;
    socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${authorization}\r\n`);
    return socket;
  };
}
