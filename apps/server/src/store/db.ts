import type { Kysely, Transaction } from 'kysely';
import type { Tables } from './schema.ts';

/** The database or a transaction on it. Every query function takes one. */
export type Db = Kysely<Tables> | Transaction<Tables>;

export type Engine = 'sqlite' | 'postgres';
