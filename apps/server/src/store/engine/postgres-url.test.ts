import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import pg from 'pg';
import { assertAlwaysSync } from '../../../../../test/support/properties.ts';
import { findPostgresUrlProblems, toPostgresConfig } from './postgres-url.ts';

describe('any DATABASE_URL', () => {
  it('[find C3] refuses a DATABASE_URL with an error message unless the driver understands it', () => {
    const fragments = [...'/@:?#&=%,[] \\a', '%20', '%ff', 'host=', '5432'];
    const fragment = fc.oneof(fc.constantFrom(...fragments), fc.string({ maxLength: 4 }));
    const texts = fc.array(fragment, { maxLength: 12 }).map((parts) => `postgres://${parts.join('')}`);
    assertAlwaysSync(5000, [texts], (text) => {
      const problems = findPostgresUrlProblems(text, false);
      if (problems.length === 0) new pg.Client(toPostgresConfig(text, undefined));
      else assert.match(problems.join(), /^DATABASE_(URL|CA_FILE): \S/);
    });
  });
});
