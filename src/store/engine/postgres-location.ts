/** The connection settings of a PostgreSQL server. */
export type PostgresLocation = {
  /** `postgres://…` */
  url: string;
  /** Most connections at once for the requests of this process. */
  connections: number;
  /** Certificate authorities in PEM that must have issued the server's certificate; they also switch TLS on. */
  authorities: string | undefined;
};
