import { mostNamedCredentials, noCredential, signatureHeaders } from '../../domain/config/authentication.ts';
import { foldedHeader, foldedName, ownedNames } from '../../domain/http/parameter-names.ts';
import type { ApiDescription, ApiOperation, ApiRequirement, ApiScheme } from '../model.ts';
import type { Question } from '../plan-outline.ts';
import { type CredentialNames, short } from '../tools/input-arguments.ts';
import { plainText } from '../tools/texts.ts';
import { type AuthenticationSource, authenticationOf, type CredentialFields } from './authentication-fields.ts';
import type { ImportChoices } from './choices.ts';
import { isSameAddress } from './server-address.ts';

/**
 * Credential of an operation: the name that its tool references (undefined for the server's credential), or the reason
 * why no credential is sufficient.
 */
type OperationCredential = { name: string | undefined; names: CredentialNames; problem?: string | undefined };

/** Credentials of a server: the default that most operations use, and named credentials for the others. */
export type ServerCredentials = {
  /** Id of the default credential, as used in `answers`. */
  usual: string | undefined;
  of: (operation: ApiOperation) => OperationCredential;
  /**
   * Returns the server's credential and the named credentials of these operations, with the scopes that they require.
   */
  fieldsFor: (operations: readonly ApiOperation[]) => CredentialFields;
  questions: Question[];
};

/**
 * Credentials that are required together, the number of operations that they are sufficient for, and the number of
 * those that already have a tool.
 */
type Option = { id: string; schemes: readonly ApiScheme[]; covers: number; coversPresent: number };

/** Input of a credential choice. `existing` lists operations that already have a tool with the server's credential. */
type CredentialChoice = Pick<AuthenticationSource, 'urlProblem' | 'taken'> & {
  choices: ImportChoices;
  present: readonly ApiOperation[];
};

const byHand = ['bearer', 'basic', 'none'];

/**
 * Chooses the server's credential. Unless `credential` is answered, it is the one that is sufficient for most
 * operations that already have a tool, then for most of all operations. Every other operation gets the first named
 * credential that is sufficient. If callers bring the server's credential, there are no named ones.
 */
export function chooseCredentials(
  description: ApiDescription,
  { choices, present, urlProblem, taken }: CredentialChoice,
): ServerCredentials {
  const { operations, schemes } = description;
  const found = optionsOf(description);
  const ranked = rankedOptions(found, description, present);
  const { answers = {} } = choices;
  const given = answers.credential;
  const described = ranked.find(({ id }) => id === given) ?? (given === undefined ? ranked[0] : undefined);
  const first = described?.schemes ?? handMade(given, description);
  const isByHand = given !== undefined && described === undefined;
  const makes = fieldsMaker({ answers, description, urlProblem, taken });
  const isAlone = isByHand || choices.isAlone === true || hasLogin(first, makes);
  const others = isAlone ? [] : ranked.filter((option) => option !== described && hasAddressOf(option.schemes, first));
  const used = others.slice(0, mostNamedCredentials);
  // Uses document order, so names do not depend on which credential comes first.
  const inOrder = found.filter((option) => option === described || used.includes(option));
  for (const option of inOrder) makes(option.schemes, [], true);
  const names = namesOfOptions(inOrder);
  const listed = listedIn(operations);
  const usual = readyCredential(undefined, first, listed);
  const further = used.map((option) => readyCredential(names.get(option.id), option.schemes, listed));
  const all = [usual, ...further];
  const nothing = readyCredential(noCredential, [], listed);
  const chooseFor = (operation: ApiOperation): OperationCredential => {
    if (!isByHand && first.length > 0 && isPublic(operation)) return nothing;
    const problems = all.map(
      (one) =>
        elsewhere(operation, one.schemes, description, choices) ??
        (isByHand ? undefined : missing(operation, one.chosen, schemes)),
    );
    return all[problems.indexOf(undefined)] ?? { ...usual, problem: problems[0] };
  };
  const known = new Map(operations.map((operation) => [operation, chooseFor(operation)]));
  const of = (operation: ApiOperation) => known.get(operation) ?? usual;
  return {
    usual: described?.id ?? given,
    of,
    fieldsFor: (asking) => withNamed(makes(first, asking, false), further, { asking, of, makes }),
    questions: questionsOf(ranked, given, first, description),
  };
}

/** Builds the configuration fields of one credential with the scopes of the operations that use it. */
type MakesFields = (
  schemes: readonly ApiScheme[],
  asking: readonly ApiOperation[],
  isNamed: boolean,
) => CredentialFields;

/** Creates a builder that gives each secret one name, regardless of how many credentials include it. */
function fieldsMaker(given: Omit<AuthenticationSource, 'scopes' | 'secretNames'>): MakesFields {
  const secretNames = new Map<string, string>();
  // People log in only for the server's credential.
  const { client_id: _, client_secret: _secret, ...stored } = given.answers;
  return (schemes, asking, isNamed) => {
    const scopes = scopesOf(asking, new Set(schemes.map(({ name }) => name)));
    return authenticationOf(schemes, { ...given, answers: isNamed ? stored : given.answers, scopes, secretNames });
  };
}

function hasLogin(schemes: readonly ApiScheme[], makes: MakesFields): boolean {
  return schemes.some(({ kind }) => kind === 'oauth2') && makes(schemes, [], false).oauth !== undefined;
}

/** Credential that operations can use, and its name in the configuration; undefined for the server's credential. */
type ReadyCredential = OperationCredential & { schemes: readonly ApiScheme[]; chosen: ReadonlySet<string> };

function readyCredential(
  name: string | undefined,
  schemes: readonly ApiScheme[],
  listed: ReadonlySet<string>,
): ReadyCredential {
  return { name, schemes, chosen: new Set(schemes.map((scheme) => scheme.name)), names: namesOf(schemes, listed) };
}

type Users = { asking: readonly ApiOperation[]; of: ServerCredentials['of']; makes: MakesFields };

/** Adds the credentials that the operations reference by name to the server's fields. */
function withNamed(fields: CredentialFields, further: readonly ReadyCredential[], { asking, of, makes }: Users) {
  const byName = Object.groupBy(asking, (operation) => of(operation).name ?? '');
  for (const { name = '', schemes } of further) {
    const users = byName[name];
    if (!users) continue;
    const { authentication, secrets, notes } = makes(schemes, users, true);
    if (authentication !== undefined) fields.credentials = { ...fields.credentials, [name]: authentication };
    fields.secrets.push(...secrets);
    fields.notes.push(...notes.filter((note) => !fields.notes.includes(note)));
  }
  return fields;
}

/** Returns true if the document declares that an operation needs no credential. */
function isPublic({ security }: ApiOperation): boolean {
  return security.length > 0 && security.every(({ size }) => size === 0);
}

/** Returns a unique name for each option, derived from its schemes. */
function namesOfOptions(options: readonly Option[]): Map<string, string> {
  const names = new Map<string, string>();
  const taken = new Set<string>([noCredential]);
  for (const { id } of options) {
    const base =
      id
        .replaceAll(/[^A-Za-z0-9_-]+/g, '_')
        .replace(/^[^A-Za-z]+/, '')
        .slice(0, 34) || 'credential';
    let name = base;
    for (let count = 2; taken.has(name); count++) name = `${base}_${count}`;
    taken.add(name);
    names.set(id, name);
  }
  return names;
}

/** Returns true if a reply to the `credential` question is allowed. */
export function isCredentialAnswer(description: ApiDescription, given: string): boolean {
  return (
    byHand.includes(given) ||
    /^(?:header|query):[\w.~-]{1,64}$/.test(given) ||
    optionsOf(description).some(({ id }) => id === given)
  );
}

/** Returns the credential options in document order. */
function optionsOf({ operations, schemes }: ApiDescription): Option[] {
  const found = new Map<string, Option>();
  for (const operation of operations) {
    for (const requirement of operation.security) {
      const option = optionOf(requirement, schemes);
      if (option && !found.has(option.id)) found.set(option.id, option);
    }
  }
  return [...found.values()];
}

function rankedOptions(
  options: readonly Option[],
  description: ApiDescription,
  present: readonly ApiOperation[],
): Option[] {
  const { operations, schemes } = description;
  for (const option of options) {
    const chosen = new Set(option.schemes.map(({ name }) => name));
    const isEnough = (operation: ApiOperation) =>
      missing(operation, chosen, schemes) === undefined &&
      elsewhere(operation, option.schemes, description, {}) === undefined;
    option.covers = operations.filter(isEnough).length;
    option.coversPresent = present.filter(isEnough).length;
  }
  return options.toSorted(
    (a, b) =>
      b.coversPresent - a.coversPresent ||
      b.covers - a.covers ||
      a.schemes.length - b.schemes.length ||
      rank(a) - rank(b),
  );
}

const ranks: readonly ApiScheme['kind'][] = ['bearer', 'key', 'basic', 'oauth2', 'aws', 'unsupported'];

function rank({ schemes }: Option): number {
  return Math.max(
    0,
    ...schemes.map(({ kind, in: location }) => ranks.indexOf(kind) + (location === 'query' ? 0.5 : 0)),
  );
}

function optionOf(requirement: ApiRequirement, schemes: ApiDescription['schemes']): Option | undefined {
  const named = [...requirement.keys()].map((name) => schemes.get(name));
  if (named.length === 0 || named.some((scheme) => scheme === undefined || scheme.kind === 'unsupported'))
    return undefined;
  const all = onePerTarget(named.filter((scheme) => scheme !== undefined));
  return all.length > 4
    ? undefined
    : { id: all.map(({ name }) => name).join('+'), schemes: all, covers: 0, coversPresent: 0 };
}

/** Removes aliases: two schemes of one requirement that use the same header or parameter are one credential. */
function onePerTarget(schemes: readonly ApiScheme[]): ApiScheme[] {
  const first = new Map(schemes.toReversed().map((scheme) => [targetOf(scheme), scheme]));
  return schemes.filter((scheme) => first.get(targetOf(scheme)) === scheme);
}

const signed = new Set(signatureHeaders.map(foldedHeader));

function targetOf({ kind, in: location, parameter = '' }: ApiScheme): string {
  if (kind !== 'key') return 'header authorization';
  // Headers that are part of an AWS signature belong to the signature.
  if (location === 'header' && signed.has(foldedHeader(parameter))) return 'header authorization';
  return `${location} ${location === 'header' ? foldedHeader(parameter) : foldedName(parameter)}`;
}

function addressOf(schemes: readonly ApiScheme[]): string | undefined {
  return schemes.find(({ address }) => address !== undefined)?.address;
}

/**
 * Returns true if two credentials belong to the same address. A secret may be sent to every host of its server, so a
 * credential found at another address cannot be added to it.
 */
function hasAddressOf(one: readonly ApiScheme[], other: readonly ApiScheme[]): boolean {
  const [own, of] = [addressOf(one), addressOf(other)];
  return own === of || (own !== undefined && of !== undefined && isSameAddress(own, of));
}

/**
 * Returns the reason why an operation does not get the credential. Recorded requests go to any host, and their
 * credential is for one host only. An address that the person set for the whole server overrides this.
 */
function elsewhere(
  operation: ApiOperation,
  chosen: readonly ApiScheme[],
  description: ApiDescription,
  { server, answers }: ImportChoices,
): string | undefined {
  const address = addressOf(chosen);
  if (address === undefined || server !== undefined || answers?.server !== undefined) return undefined;
  const own = (operation.servers ?? description.servers)[0]?.url;
  if (own === undefined || isSameAddress(own, address)) return undefined;
  return 'its address differs from the address of the credential; create a separate server for it';
}

function missing(
  operation: ApiOperation,
  chosen: ReadonlySet<string>,
  schemes: ApiDescription['schemes'],
): string | undefined {
  if (operation.security.length === 0) return undefined;
  const isEnough = operation.security.some((requirement) => {
    const option = optionOf(requirement, schemes);
    return requirement.size === 0 || option?.schemes.every(({ name }) => chosen.has(name)) === true;
  });
  if (isEnough) return undefined;
  const needed = [...(operation.security[0]?.keys() ?? [])];
  const reason = needed.map((name) => schemes.get(name)?.reason).find((text) => text !== undefined);
  return reason ?? `it needs the credential ${short(needed.join('+'))}`;
}

/** Returns a credential that the document does not describe: `bearer`, `basic`, `header:NAME`, or `query:NAME`. */
function handMade(given: string | undefined, { format, servers }: ApiDescription): ApiScheme[] {
  const [kind = '', parameter] = (given ?? '').split(':');
  const base = {
    name: 'token',
    ...(format !== 'OpenAPI' && format !== 'Swagger' && { address: servers[0]?.url }),
    description: '',
  };
  if (kind === 'bearer' || kind === 'basic') return [{ ...base, kind }];
  if ((kind !== 'header' && kind !== 'query') || parameter === undefined) return [];
  return [{ ...base, name: parameter, kind: 'key', in: kind, parameter }];
}

function namesOf(schemes: readonly ApiScheme[], listed: ReadonlySet<string>): CredentialNames {
  const keysIn = (location: string) =>
    schemes.flatMap((scheme) => (scheme.in === location && scheme.parameter !== undefined ? [scheme.parameter] : []));
  return {
    headers: new Set(keysIn('header').map(foldedHeader)),
    cookies: new Set(keysIn('cookie')),
    query: ownedNames(keysIn('query')),
    isAws: schemes.some(({ kind }) => kind === 'aws'),
    listed: schemes.length > 0 ? listed : new Set(),
  };
}

const fewest = 3;

/**
 * Returns parameters that are named and described like a credential. If most operations have such a parameter, it is
 * the server's credential, like `token` in the Slack API. Otherwise it is an argument, like the token that an operation
 * revokes.
 */
function listedIn(operations: readonly ApiOperation[]): Set<string> {
  const counts = new Map<string, number>();
  for (const { inputs } of operations) {
    const listed = inputs.filter(
      ({ name, location, description }) =>
        (location === 'header' || location === 'query') &&
        /^(?:x-)?(?:token|api[-_]?key|access[-_]?token|auth[-_]?token)$/i.test(name) &&
        /\b(?:auth\w*|access|bearer)[ _-]token|api[ _-]?key|\bauthori[sz]ation\b|your token/i.test(description),
    );
    for (const name of new Set(listed.map((input) => input.name.toLowerCase())))
      counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const isOfMost = (count: number) => count >= fewest && count * 2 > operations.length;
  return new Set([...counts].flatMap(([name, count]) => (isOfMost(count) ? [name] : [])));
}

const scopePattern = /^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/;

/** Returns only the scopes that the chosen operations require. */
function scopesOf(operations: readonly ApiOperation[], chosen: ReadonlySet<string>): string[] {
  const scopes = new Set<string>();
  for (const { security } of operations) {
    const requirement = security.find((alternative) => [...alternative.keys()].some((name) => chosen.has(name)));
    for (const [name, wanted] of requirement ?? []) if (chosen.has(name)) for (const scope of wanted) scopes.add(scope);
  }
  return [...scopes].filter((scope) => scopePattern.test(scope) && !scope.includes('{{')).slice(0, 100);
}

function questionsOf(
  options: readonly Option[],
  given: string | undefined,
  schemes: readonly ApiScheme[],
  description: ApiDescription,
): Question[] {
  const total = description.operations.length;
  const listed = options.slice(0, 10).map(({ id, schemes: all, covers }) => ({
    value: id,
    meaning: `${all.map(meaningOf).join(' and ')}; sufficient for ${covers} of ${total} operations`,
  }));
  const hasLogins = schemes.some(
    ({ kind, authorizationUrl, tokenUrl }) => kind === 'oauth2' && authorizationUrl && tokenUrl,
  );
  const logins = hasLogins ? loginQuestions : [];
  if (given !== undefined || options.length === 1) return logins;
  if (options.length === 0) return [unknownCredential];
  const question =
    'Which credential should the server use? Tools that need another credential reference their own, if possible.';
  return [{ name: 'credential', required: false, question, options: listed, assumed: options[0]?.id }, ...logins];
}

const loginQuestions: Question[] = [
  {
    name: 'client_id',
    required: false,
    question:
      'Client ID of your OAuth application at the provider. With client_id and client_secret, people log in. Without them, one access token is stored.',
  },
  { name: 'client_secret', required: false, question: 'Client secret of your OAuth application.' },
];

const unknownCredential: Question = {
  name: 'credential',
  required: false,
  question: 'The document describes no usable credential. Which credential does the API need?',
  options: [
    { value: 'bearer', meaning: 'a token in the Authorization header' },
    { value: 'basic', meaning: 'username and password' },
    { value: 'header:NAME', meaning: 'a key in a header' },
    { value: 'query:NAME', meaning: 'a key in the query' },
    { value: 'none', meaning: 'no credential' },
  ],
  assumed: 'none',
};

function meaningOf(scheme: ApiScheme): string {
  const text = plainText(scheme.description, 80);
  const kinds = {
    bearer: 'a bearer token',
    basic: 'username and password',
    key: `a key in the ${scheme.in ?? 'header'} ${short(scheme.parameter ?? '')}`,
    oauth2: scheme.authorizationUrl ? 'a user login (OAuth)' : 'an access token (OAuth)',
    aws: 'an AWS signature',
    unsupported: 'unsupported',
  };
  return text === '' ? kinds[scheme.kind] : `${kinds[scheme.kind]} (${text})`;
}
