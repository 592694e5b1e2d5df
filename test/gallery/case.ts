/** A call of a gallery tool: the request that the API must receive, and a response from its documentation. */
export type GalleryCase = {
  call: [tool: string, args: object];
  /** Exact method, path, and query. */
  request: string;
  /** Headers that the request must have in addition to those of every request of the server. */
  headers?: Record<string, string>;
  /** JSON body as a value, or any other body as text; absent if there is none. */
  body?: unknown;
  response: unknown;
  responseHeaders?: Record<string, string>;
  /** Result that the agent gets: a JSON value, or the text of a text response. Absent if it is the whole response. */
  result?: unknown;
};

export type GalleryExample = {
  /** File name in examples/gallery, without extension. */
  name: string;
  /** Origins in the file, which the test replaces by the address of the upstream. */
  origins: readonly string[];
  env: Record<string, string>;
  /** Headers of every request. */
  headers: Record<string, string>;
  cases: readonly GalleryCase[];
};
