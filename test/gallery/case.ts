/** A call of a tool of the gallery: the request that the API must get, and an answer from its documentation. */
export type GalleryCase = {
  tool: string;
  args: object;
  /** Method, path and query, exactly. */
  request: string;
  /** Headers that the request must have, besides those of every request of the server. */
  headers?: Record<string, string>;
  /** JSON body as a value, or any other body as text; absent where there is none. */
  body?: unknown;
  answer: unknown;
  answerHeaders?: Record<string, string>;
  /** The result as the agent gets it: JSON, or the text of an answer that is a text. */
  result: unknown;
};

export type GalleryExample = {
  /** File in examples/gallery, without its ending. */
  name: string;
  /** Origins in the file, which the test replaces by that of the stub. */
  origins: readonly string[];
  env: Record<string, string>;
  /** Headers of every request. */
  headers: Record<string, string>;
  cases: readonly GalleryCase[];
};
