import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';

type Stop<Fixture> = (fixture: Fixture) => unknown;

/** Fixtures of the enclosing suite: they start in the order of their declaration and stop in the reverse order. */
export type Fixtures = {
  /**
   * Starts a fixture before the tests and stops it after them, by default with its `stop` or `close`. The result stands
   * for the fixture, and has its members once it has started. Members that are assigned to it exist immediately.
   */
  start<Fixture extends object>(start: () => Promise<Fixture> | Fixture, stop?: Stop<Fixture>): Fixture;
  /** Creates a temporary folder that is deleted after the tests. */
  folder(prefix?: string): string;
};

/** Starts one fixture before the tests of the enclosing suite, and stops it after them. */
export function useFixture<Fixture extends object>(start: () => Promise<Fixture> | Fixture): Fixture {
  return useFixtures().start(start);
}

export function useFixtures(): Fixtures {
  const starts: (() => Promise<void>)[] = [];
  const stops: (() => unknown)[] = [];
  before(async () => {
    for (const start of starts) await start();
  });
  after(async () => {
    for (const stop of stops.toReversed()) await stop();
  });
  return {
    start<Fixture extends object>(start: () => Promise<Fixture> | Fixture, stop: Stop<Fixture> = stopByMember) {
      let fixture: Fixture | undefined;
      starts.push(async () => {
        const started = await start();
        fixture = started;
        stops.push(() => stop(started));
      });
      return new Proxy({} as Fixture, {
        get(assigned, name) {
          if (Object.hasOwn(assigned, name)) return Reflect.get(assigned, name);
          if (!fixture) throw new Error(`The fixture has not started, so it has no ${String(name)}.`);
          const member: unknown = Reflect.get(fixture, name);
          return typeof member === 'function' ? member.bind(fixture) : member;
        },
      });
    },
    folder(prefix = 'toolhost-test-') {
      const folder = mkdtempSync(join(tmpdir(), prefix));
      stops.push(() => rmSync(folder, { recursive: true, force: true }));
      return folder;
    },
  };
}

function stopByMember(fixture: { stop?: () => unknown; close?: () => unknown }): unknown {
  return fixture.stop ? fixture.stop() : fixture.close?.();
}
