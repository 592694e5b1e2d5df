/**
 * Functions of Node's HTTP server. An import of `node:http` would also evaluate its browser-compatible exports
 * (WebSocket, MessageEvent …), which load Node's own copy of undici: 16 MB and 25 ms at startup.
 */
export const { createServer, STATUS_CODES, IncomingMessage: NodeRequest } = process.getBuiltinModule('node:http');
