import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { getValidConfig, openApi, planDocument } from '../../../../test/support/import/import-plans.ts';
import { pluck } from '../../../../test/support/pluck.ts';
import type { Json } from '../../../../test/support/toolhost/toolhost.ts';

const responses = { 200: { description: 'ok' } };
const key = { type: 'apiKey', in: 'header', name: 'X-Key', description: 'From the settings page.' };
const basic = { type: 'http', scheme: 'basic' };
const flows = { clientCredentials: { tokenUrl: 'https://login.example.com/token', scopes: {} } };

function createDocument(securitySchemes: Json, security: Json[]): Json {
  const paths = { '/a': { get: { summary: 'Read it', responses } } };
  return openApi(paths, { components: { securitySchemes }, security });
}
const planWith = (document: Json, access?: string) =>
  planDocument(document, { include: ['*'], ...(access !== undefined && { answers: { access } }) });

describe('the access of an imported server', () => {
  const keyed = createDocument({ key }, [{ key: [] }]);

  it('[imp 3] asks how callers authenticate, and assumes API keys with one stored credential', () => {
    const plan = planWith(keyed);
    assert.deepEqual(
      plan.questions.map(({ name, required, options, assumed }) => [
        name,
        required,
        pluck(options ?? [], 'value'),
        assumed,
      ]),
      [['access', false, ['key', 'login', 'person'], 'key']],
    );
    assert.deepEqual([getValidConfig(plan).login, pluck(plan.secrets, 'name')], [undefined, ['KEY']]);
    assert.deepEqual(planWith(keyed, 'key').config, plan.config);
  });

  it('[imp 3] stores one credential for people who log in', () => {
    const plan = planWith(keyed, 'login');
    const { login, authentication } = getValidConfig(plan);
    assert.deepEqual([login, pluck(plan.secrets, 'name')], [{}, ['KEY']]);
    assert.deepEqual(authentication, { type: 'ApiKey', header: 'X-Key', token: '{{KEY}}' });
  });

  it('[imp 3] makes a form of the credential that each person brings, and stores no secret', () => {
    const plan = planWith(createDocument({ basic, key }, [{ basic: [], key: [] }]), 'person');
    const { login, authentication } = getValidConfig(plan);
    assert.deepEqual(plan.secrets, []);
    assert.deepEqual(login, {
      fields: [
        { name: 'BASIC_USER', label: 'User name', secret: false },
        { name: 'BASIC_PASSWORD', label: 'Password' },
        { name: 'KEY', label: 'API key' },
      ],
    });
    assert.deepEqual((authentication as Json[])[0], {
      type: 'Basic',
      user: '{{BASIC_USER}}',
      password: '{{BASIC_PASSWORD}}',
    });
  });

  it('[imp 3] lets people omit a credential that only some tools use, and names fields that have the same label', () => {
    const document = createDocument({ key, admin: { ...key, name: 'X-Admin' } }, [{ key: [] }]);
    const paths = document.paths as Json;
    paths['/b'] = { get: { summary: 'Read it', responses } };
    paths['/c'] = { get: { summary: 'Administer it', security: [{ admin: [] }], responses } };
    assert.deepEqual(getValidConfig(planWith(document, 'person')).login, {
      fields: [
        { name: 'KEY', label: 'API key KEY' },
        { name: 'ADMIN_KEY', label: 'API key ADMIN_KEY', optional: true },
      ],
    });
  });

  it('[imp 3] rejects an unknown answer, and a credential that people cannot enter', () => {
    assert.throws(() => planWith(keyed, 'everyone'), /answers\.access: found "everyone"; allowed: key, login, person/);
    const machine = createDocument({ machine: { type: 'oauth2', flows } }, [{ machine: [] }]);
    assert.deepEqual(planWith(machine).questions, []);
    assert.throws(() => planWith(machine, 'person'), /answers\.access: people cannot enter the credential of this API/);
    assert.deepEqual(getValidConfig(planWith(machine, 'login')).login, {});
  });
});
