/** A PostgreSQL server, and how it is connected to. */
export type PostgresLocation = {
  /** `postgres://…` */
  url: string;
  /** Most connections at once for the requests of this process. */
  connections: number;
  /** Certificates of authorities in PEM, which the server's certificate must come from; they also switch TLS on. */
  authorities: string | undefined;
};
