import type { Engine } from '../../src/store/database.ts';
import { startPostgres } from './postgres.ts';
import { type StartOptions, startToolhost, type TestToolhost } from './toolhost.ts';

/** The service on one of the two engines, with a clock in the test's hand. */
export type EngineToolhost = {
  toolhost: TestToolhost;
  now(): number;
  /** Moves the clock of the service. */
  wait(ms: number): void;
  stop(): Promise<void>;
};

export async function startOn(
  engine: Engine,
  options: StartOptions = {},
  start = Date.parse('2026-11-20T12:00:00Z'),
): Promise<EngineToolhost> {
  const postgres = engine === 'postgres' ? await startPostgres() : undefined;
  let now = start;
  const toolhost = await startToolhost({
    ...options,
    env: { ...options.env, ...(postgres && { DATABASE_URL: await postgres.createDatabase() }) },
    surroundings: { now: () => now },
  });
  return {
    toolhost,
    now: () => now,
    wait(ms) {
      now += ms;
    },
    async stop() {
      await toolhost.stop();
      await postgres?.stop();
    },
  };
}
