import type { Problem } from '@toolhost/errors/errors';
import { describeValue, type ProblemList, suggestNearestOrList } from '@toolhost/errors/problems';
import { createPatternMatcher } from '@toolhost/json-schema/pattern-match';
import { parsePattern } from '@toolhost/json-schema/pattern-syntax';
import { maxEventLoopSteps, StepBudget, StepLimitExceeded } from '@toolhost/json-schema/step-budget';
import { type Authentications, credentialPath, isStored, toCredentialList } from './authentication.ts';
import { findSuffixSection } from './http/public-suffix.ts';
import { parseUrl } from './http/read-url.ts';
import { allowSchema, getMaxLength, isSecretField, type LoginField, loginFieldSchema, loginSchema } from './login.ts';
import { checkLoginValue } from './login-values.ts';
import type { PersonalValues } from './personal-host-rules.ts';

type Raw = { [field: string]: unknown };

function isObject(value: unknown): value is Raw {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the well-formed fields of `login` with their positions. */
function getFields({ login }: Raw): { field: LoginField; index: number }[] {
  const fields = isObject(login) && Array.isArray(login.fields) ? login.fields.slice(0, 100) : [];
  return fields.flatMap((raw, index) => {
    const { data: field } = loginFieldSchema.safeParse(raw);
    return field ? [{ field, index }] : [];
  });
}

/** Returns the well-formed values of `oauth.values`. */
function getValues({ oauth }: Raw): [name: string, source: { hosts?: string[] }][] {
  if (!isObject(oauth) || !isObject(oauth.values)) return [];
  return Object.entries(oauth.values)
    .slice(0, 100)
    .map(([name, source]) => {
      const hosts = isObject(source) && Array.isArray(source.hosts) ? source.hosts : undefined;
      return [name, hosts?.every((host) => typeof host === 'string') ? { hosts } : {}];
    });
}

/** Returns the values of people that a configuration declares, as far as it is well-formed. */
export function findPersonalValues(raw: Raw): PersonalValues {
  const fields = getFields(raw).map(({ field }) => field);
  const values = getValues(raw);
  const originHosts = values.flatMap(([name, { hosts }]): [string, string[]][] => (hosts ? [[name, hosts]] : []));
  const isOptional = ({ optional, default: fallback }: LoginField) => optional === true && fallback === undefined;
  return {
    fieldNames: new Set(fields.map(({ name }) => name)),
    names: new Set([...fields.map(({ name }) => name), ...values.map(([name]) => name)]),
    optionalNames: new Set(fields.filter(isOptional).map(({ name }) => name)),
    originHosts: new Map(originHosts),
  };
}

/** Adds the problems of `login` and `oauth.values` that their field types do not express. */
export function checkLogin(raw: Raw, problems: ProblemList): void {
  checkValues(raw, problems);
  if (!isObject(raw.login)) return;
  const inLogin = problems.nested((path) => (path ? `login.${path}` : 'login'));
  inLogin.addAll(findPassthroughProblems(raw.login, raw.oauth));
  inLogin.addAll(findAllowProblems(raw.login.allow));
  inLogin.addAll(findClientProblems(raw.login.clients));
  checkViewRules(raw, inLogin);
  checkFields(raw, inLogin);
}

/** Rejects what needs a grant of this service, because in this token mode agents hold the provider's token itself. */
function findPassthroughProblems(login: Raw, oauth: unknown): Problem[] {
  if (!isObject(oauth) || oauth.token_mode !== 'passthrough') return [];
  const message =
    'cannot be combined with token_mode "passthrough", in which agents hold the token of the provider and the service does not know whose it is; leave one of the two out';
  return ['allow', 'views', 'fields'].filter((field) => login[field] !== undefined).map((path) => ({ path, message }));
}

function findAllowProblems(raw: unknown): Problem[] {
  const { data: allow } = allowSchema.safeParse(raw);
  if (!allow) return [];
  const { members, domains = [], groups = [] } = allow;
  if (members !== true && domains.length === 0 && groups.length === 0) {
    const message = 'lets no one in; set members to true, or list domains or groups';
    return [{ path: 'allow', message }];
  }
  return domains.flatMap((domain, index) => {
    const message = findDomainProblem(domain);
    return message === undefined ? [] : [{ path: `allow.domains[${index}]`, message }];
  });
}

const domainPattern = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]$/i;

function findDomainProblem(domain: string): string | undefined {
  const found = describeValue(domain);
  if (domain.includes('*')) return `found ${found}; patterns are not allowed, so list each domain, such as example.com`;
  if (!domainPattern.test(domain))
    return `found ${found}; allowed: the part of an email address after the @, such as example.com`;
  return findSuffixSection(domain.toLowerCase()) === undefined
    ? undefined
    : `found ${found}, below which anyone can register a name; allowed: the domain of one organization, such as example.com`;
}

/** Schemes that no client is reached with. */
const otherSchemes = /^(?:file|ftp|wss?|data|blob|javascript|vbscript|about|mailto|view-source|chrome|intent):$/;
const loopbackHosts: readonly string[] = ['127.0.0.1', '[::1]', 'localhost'];

function findClientProblems(raw: unknown): Problem[] {
  const { data: clients = [] } = loginSchema.shape.clients.safeParse(raw);
  const seen = new Set<string>();
  return clients.flatMap((client, index) => {
    const message = seen.has(client) ? 'is listed twice; remove one' : findClientProblem(client);
    seen.add(client);
    return message === undefined ? [] : [{ path: `clients[${index}]`, message }];
  });
}

function findClientProblem(client: string): string | undefined {
  const allowed = `found ${describeValue(client)}; allowed: the https URL of a client's metadata document, or one exact redirect URI`;
  if (client.includes('*')) return `${allowed}; patterns are not allowed`;
  const url = /^[\x21-\x7e]+$/.test(client) && !/[\\<>"^`{|}]/.test(client) ? parseUrl(client) : undefined;
  if (!url) return allowed;
  if (url.username !== '' || url.password !== '' || client.includes('#') || otherSchemes.test(url.protocol))
    return allowed;
  return url.protocol === 'http:' && !loopbackHosts.includes(url.hostname)
    ? `${allowed}; http is allowed only on a loopback address`
    : undefined;
}

function checkViewRules({ views, login }: Raw, problems: ProblemList): void {
  const { data: rules = [] } = loginSchema.shape.views.safeParse((login as Raw).views);
  const names = isObject(views) ? Object.keys(views) : [];
  const seenGroups = new Set<string | undefined>();
  for (const [index, { group, view }] of rules.entries()) {
    const path = `views[${index}]`;
    if (seenGroups.has(undefined))
      problems.add(() => ({
        path,
        message: 'is never reached, because an earlier entry without group applies to everyone',
      }));
    else if (seenGroups.has(group))
      problems.add(() => ({
        path: `${path}.group`,
        message: 'is already in an earlier entry, which counts; remove one',
      }));
    seenGroups.add(group);
    if (names.includes(view)) continue;
    const suggestion = () =>
      suggestNearestOrList(view, names, problems.suggestionBudget, {
        none: '; it has no views',
        all: '; it has: ',
      });
    problems.add(() => ({
      path: `${path}.view`,
      message: `the server has no view ${describeValue(view)}${suggestion()}`,
    }));
  }
}

function checkFields(raw: Raw, problems: ProblemList): void {
  const variables = isObject(raw.variables) ? raw.variables : {};
  const seenNames = new Set<string>();
  for (const { field, index } of getFields(raw)) {
    const { name } = field;
    const add = (path: string, message: string) => problems.add(() => ({ path: `fields[${index}].${path}`, message }));
    if (seenNames.has(name)) add('name', `"${name}" is already the name of another field`);
    else if (Object.hasOwn(variables, name)) add('name', `"${name}" is already a variable of the server; rename one`);
    seenNames.add(name);
    for (const { path, message } of findFieldProblems(field)) add(path, message);
  }
}

/** Returns the problems of one field. Paths are relative to it. */
function findFieldProblems(field: LoginField): Problem[] {
  const { help, pattern, default: fallback } = field;
  const problems: Problem[] = [];
  if (help !== undefined && !isHelpUrl(help))
    problems.push({ path: 'help', message: `found ${describeValue(help)}; allowed: an https URL without user name` });
  const patternProblem = findPatternProblem(field);
  if (pattern !== undefined && patternProblem !== undefined)
    problems.push({ path: 'pattern', message: `found ${describeValue(pattern)}, which ${patternProblem}` });
  if (fallback === undefined) return problems;
  if (isSecretField(field)) {
    const message = 'cannot be combined with a secret; set "secret": false, or leave it out';
    return [...problems, { path: 'default', message }];
  }
  const checked = checkLoginValue(patternProblem === undefined ? field : { ...field, pattern: undefined }, fallback);
  if ('problem' in checked || checked.value !== fallback) {
    const message = `found ${describeValue(fallback)}; allowed: a value that people could enter, without outer spaces, that matches pattern and max_length`;
    problems.push({ path: 'default', message });
  }
  return problems;
}

/** Returns the problem of a pattern that the matcher refuses, or that takes too long for the longest value. */
function findPatternProblem(field: LoginField): string | undefined {
  const { pattern } = field;
  if (pattern === undefined) return undefined;
  const parsed = parsePattern(pattern);
  if ('fault' in parsed) return parsed.fault;
  try {
    createPatternMatcher(`^(?:${pattern})$`)('a'.repeat(getMaxLength(field)), new StepBudget(maxEventLoopSteps));
    return undefined;
  } catch (error) {
    if (error instanceof StepLimitExceeded)
      return 'takes too many steps for the longest value; simplify it, or set a smaller max_length';
    throw error;
  }
}

function isHelpUrl(text: string): boolean {
  const url = /\s/.test(text) ? undefined : parseUrl(text);
  return url?.protocol === 'https:' && url.username === '' && url.password === '';
}

/** Adds the problems of `oauth.values` that concern other fields, or hosts. */
function checkValues(raw: Raw, problems: ProblemList): void {
  const add = (path: string, message: string) => problems.add(() => ({ path: `oauth.values.${path}`, message }));
  const variables = isObject(raw.variables) ? raw.variables : {};
  const fieldNames = new Set(getFields(raw).map(({ field }) => field.name));
  for (const [name, { hosts = [] }] of getValues(raw)) {
    if (Object.hasOwn(variables, name)) add(name, 'is already a variable of the server; rename one');
    if (fieldNames.has(name)) add(name, 'is already a field of login; rename one');
    for (const [index, host] of hosts.entries()) {
      const suffix = host.startsWith('*.') ? host.slice(2).toLowerCase() : '';
      if (!suffix.includes('.') || findSuffixSection(suffix) !== 'icann') continue;
      const message = `anyone can register a name below ${suffix}; write the domain of the API, such as *.example.${suffix}`;
      add(`${name}.hosts[${index}]`, message);
    }
  }
}

/**
 * Returns the credentials of `authentication` that nothing fills on a server with `login` and without `oauth`: its
 * people have no token of the upstream.
 */
export function findUnfilledCredentials(authentications: Authentications): Problem[] {
  return toCredentialList(authentications).flatMap((credential, index) =>
    isStored(credential)
      ? []
      : [
          {
            path: `${credentialPath(authentications, index)}.token`,
            message:
              'is missing; people who log in here have no token of the API. Store one as "{{NAME}}", or use "{{FIELD}}" with a field of login.fields',
          },
        ],
  );
}
