/** A raw response with the outcome that the HTTP client must have for it. */
export type CorpusCase = {
  name: string;
  /** One character for each byte. */
  bytes: string;
  /** Outcome as `formatOutcome` formats it. */
  expected: string;
  /** Outcome if the bytes arrive one by one, if it is a different one. */
  expectedInPieces?: string;
  /** Request method. Defaults to GET. */
  method?: 'GET' | 'HEAD' | 'POST';
  /** Length of the request body. Defaults to 2 for POST. */
  requestBytes?: number;
  /** Event after the last byte. By default, the connection stays open. */
  ending?: 'close' | 'reset';
};

/** Status line of most cases. */
export const ok = 'HTTP/1.1 200 OK\r\n';
/** Rest of a response with the body `ok`. */
export const sized = 'content-length: 2\r\n\r\nok';
export const chunkedOk = `${ok}transfer-encoding: chunked\r\n\r\n`;
