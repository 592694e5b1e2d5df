import {
  clientsThat,
  clientsWithStrictNames,
  inWords,
  knownClients,
  toolNameOfModels,
} from '../domain/clients/clients.ts';
import { firstNames } from '../domain/problems/first-names.ts';
import { schemaFaults } from '../domain/warnings/client-schemas.ts';
import { type Fields, objectOf, ok, problem, type Reason, type Verdict, warning, warningOf } from './check.ts';

const maxTokens = 10_000;

/** Checks the entries of `tools/list` (MCP 2025-11-25, server/tools). */
export function checkToolList(tools: readonly Fields[]): Verdict {
  const nameless = tools.filter(({ name }) => typeof name !== 'string' || name === '').length;
  if (nameless > 0) return problem(`Tools without a name: ${nameless}.`);
  const byName = Map.groupBy(tools, ({ name }) => String(name));
  const twice = [...byName].filter(([, { length }]) => length > 1).map(([name]) => name);
  if (twice.length > 0) return problem(`Several tools have the same name: ${firstNames(twice)}.`);
  const broken = tools.filter(({ inputSchema }) => objectOf(inputSchema).type !== 'object');
  if (broken.length > 0) {
    const strict = clientsThat(({ addsTypes }) => !addsTypes);
    return problem(`These tools have no input schema of type object: ${firstNames(namesOf(broken))}.`, strict);
  }
  const listing = tools.filter(
    ({ outputSchema }) => outputSchema !== undefined && objectOf(outputSchema).type !== 'object',
  );
  if (listing.length > 0)
    return problem(
      `These tools have an output schema that is not of type object, for which SDKs refuse the whole list: ${firstNames(namesOf(listing))}.`,
    );
  const silent = tools.filter(({ description }) => typeof description !== 'string' || description.trim() === '');
  if (silent.length > 0)
    return warning(`Models choose tools by their description; without one: ${firstNames(namesOf(silent))}.`);
  return ok('Every tool has a name, a description and an input schema of type object.');
}

export function checkToolCount(count: number, none = 'The server has no tools'): Verdict {
  const tools = count === 1 ? '1 tool' : `${count} tools`;
  if (count === 0) return warning(`${none}.`);
  const limited = knownClients.filter((client) => client.maxTools !== undefined);
  const exceeded = limited.filter((client) => count > (client.maxTools ?? 0));
  const limits = limited.map(({ name, maxTools }) => `${name} ${maxTools}`).join(', ');
  if (exceeded.length === 0)
    return ok(`${tools}; limits, over all servers of a client: ${limits}.`, clientNames(limited));
  return warning(`${tools}; limits, over all servers of a client: ${limits}. Split the server.`, clientNames(exceeded));
}

/** `slug` is the name under which people add the server to their client. */
export function checkToolNames(names: readonly string[], slug: string): Verdict {
  const strange = names.filter((name) => !toolNameOfModels.test(name));
  const tooLong = knownClients.flatMap(({ name: client, toolName }) =>
    names
      .filter((name) => toolName.shown(slug, name).length > toolName.max)
      .map((name) => ({ client, name, max: toolName.max })),
  );
  const reasons: Reason[] = [...Map.groupBy(tooLong, ({ client }) => client)].map(([client, found]) => ({
    clients: [client],
    text: `${client} takes ${found[0]?.max} characters together with the name of the server: ${firstNames(found.map(({ name }) => name))}.`,
  }));
  if (strange.length > 0) {
    const text = `Models take only letters, digits, _ and -: ${firstNames(strange)}.`;
    reasons.unshift({ clients: clientsWithStrictNames, text, stops: true });
  }
  if (reasons.length === 0) return ok('Short enough for every client, also with the name of the server before them.');
  return warningOf(reasons);
}

export function checkTokens(tokens: number): Verdict {
  const cost = `About ${tokens} tokens in every conversation`;
  return tokens <= maxTokens ? ok(`${cost}.`) : warning(`${cost}; shorten descriptions or split the server.`);
}

/** Checks input schemas by what clients refuse, and by what they leave out. */
export function checkSchemas(tools: readonly Fields[]): Verdict {
  const reasons = schemaFaults.flatMap(({ what, refusedBy, spoiltBy, find }): Reason[] => {
    const found = tools.filter(({ inputSchema }) => find(objectOf(inputSchema)).length > 0);
    if (found.length === 0) return [];
    const text = `${what}: ${firstNames(namesOf(found))}`;
    const refused: Reason[] = refusedBy.length === 0 ? [] : [{ text: `${text}.`, clients: refusedBy, stops: true }];
    if (!spoiltBy) return refused;
    const { clients, how } = spoiltBy;
    return [...refused, { text: `${text}; ${inWords(clients)} ${how}.`, clients }];
  });
  return reasons.length === 0 ? ok('No schema has anything that a known client refuses.') : warningOf(reasons);
}

const hints = ['readOnlyHint', 'destructiveHint', 'openWorldHint'];

/** Checks the annotations that some clients decide by whether a tool only reads. */
export function checkHints(tools: readonly Fields[]): Verdict {
  const concerned = clientsThat(({ wantsHints }) => wantsHints);
  const silent = tools.filter(({ annotations }) =>
    hints.some((hint) => typeof objectOf(annotations)[hint] !== 'boolean'),
  );
  if (silent.length === 0) return ok('Every tool says whether it only reads.', concerned);
  return warning(
    `${inWords(concerned)} takes tools without ${inWords(hints)} for ones that change things: ${firstNames(namesOf(silent))}.`,
    concerned,
  );
}

const namesOf = (tools: readonly Fields[]) => tools.map(({ name }) => String(name));
const clientNames = (clients: readonly { name: string }[]) => clients.map((client) => client.name);
