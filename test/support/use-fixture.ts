import { after, before } from 'node:test';

/** Starts a fixture before the tests of a `describe`, and stops it after them. Only tests can use its members. */
export function useFixture<Fixture extends { stop(): Promise<void> }>(start: () => Promise<Fixture>): Fixture {
  const fixture = {} as Fixture;
  before(async () => void Object.assign(fixture, await start()));
  after(() => fixture.stop());
  return fixture;
}
