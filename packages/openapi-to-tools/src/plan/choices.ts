import { invalidInputError, type Problem } from '@toolhost/errors/errors';
import { createSuggestionBudget, suggestName } from '@toolhost/errors/problems';
import type { ApiDescription } from '../model.ts';
import { accessAnswers, isAccessAnswer } from './access.ts';
import { isCredentialAnswer } from './credentials.ts';
import { isSecretVariable, toVariableName } from './server-address.ts';

/** Decisions of a person or an agent about an import. All are optional. */
export type ImportChoices = {
  /** Tags, operation IDs, tool names, `METHOD /path`, or `/path`; `*` matches any text. */
  include?: readonly string[] | undefined;
  exclude?: readonly string[] | undefined;
  /** One sentence about what agents should do with the server. The proposal is chosen to match it. */
  for?: string | undefined;
  /** Import only operations that read. */
  readOnly?: boolean | undefined;
  /** Import deprecated operations as well. */
  deprecated?: boolean | undefined;
  /** Let tools with large responses return only the fields that the plan proposes. */
  fields?: boolean | undefined;
  /** Address that replaces the one in the document. */
  server?: string | undefined;
  /** Replies to the plan's questions, by question name. */
  answers?: Readonly<Record<string, string>> | undefined;
  /** Address that the document was read from; relative server URLs are resolved against it. */
  documentUrl?: string | undefined;
  /**
   * Keys of the operations whose tool already uses the server's credential. The server keeps the credential that most
   * of them use.
   */
  existingKeys?: ReadonlySet<string> | undefined;
  /** True if callers bring the server's credential. Its tools can then name no other credential. */
  isOnlyCredential?: boolean | undefined;
  /** Prefix of everything that the import adds to an existing server. */
  prefix?: string | undefined;
  name?: string | undefined;
  slug?: string | undefined;
};

const commonQuestions = ['server', 'credential', 'access', 'client_id', 'client_secret', 'region', 'service'];

/** Returns the names of all questions that a document may ask. */
export function getQuestionNames(description: ApiDescription): string[] {
  return [...new Set([...commonQuestions, ...getVariableNames(description, false)])];
}

/**
 * Returns the names of variables in all addresses: those that are secrets of the server, or those that can be answered.
 * A secret cannot be an answer, because answers are stored in plain text.
 */
function getVariableNames({ servers, operations }: ApiDescription, areSecret: boolean): string[] {
  const allServers = [...servers, ...operations.flatMap((operation) => operation.servers ?? [])];
  return allServers.flatMap(({ url, variables }) =>
    variables.flatMap(({ name }) => (isSecretVariable(name, url) === areSecret ? [name, toVariableName(name)] : [])),
  );
}

/** Rejects answers that do not belong to a question of the document. @throws AppError invalid */
export function checkAnswers(description: ApiDescription, { answers = {}, server }: ImportChoices): void {
  const questionNames = getQuestionNames(description);
  const secrets = new Set(getVariableNames(description, true));
  const problems: Problem[] = [];
  const suggestionBudget = createSuggestionBudget();
  for (const [name, value] of Object.entries(answers)) {
    const path = `answers.${name.slice(0, 64)}`;
    if (!questionNames.includes(name) && secrets.has(name)) {
      const secret = toVariableName(name).toUpperCase();
      const message = `is a secret, but answers are stored in plain text; remove it, and set the secret ${secret} after creating the server`;
      problems.push({ path, message });
    } else if (!questionNames.includes(name)) {
      problems.push({
        path,
        message: `the document has no such question${suggestName(name, questionNames, suggestionBudget) || `; allowed: ${questionNames.slice(0, 20).join(', ')}`}`,
      });
    } else if (name === 'credential' && !isCredentialAnswer(description, value)) {
      const schemeNames = [...description.schemes.keys()].slice(0, 10);
      const allowed = [...schemeNames, 'bearer', 'basic', 'header:NAME', 'query:NAME', 'none'].join(', ');
      problems.push({
        path,
        message: `found ${JSON.stringify(value.slice(0, 60))}; allowed: ${allowed}, or several credentials of the document joined by +`,
      });
    } else if (name === 'access' && !isAccessAnswer(value)) {
      problems.push({
        path,
        message: `found ${JSON.stringify(value.slice(0, 60))}; allowed: ${accessAnswers.join(', ')}`,
      });
    }
  }
  const address = server ?? answers.server;
  if (address !== undefined && !/^\d{1,3}$/.test(address) && !/^https?:\/\/[^/\s]+/i.test(address)) {
    problems.push({
      path: 'server',
      message: `found ${JSON.stringify(address.slice(0, 100))}; allowed: a URL such as https://api.example.com/v1, or the number of a server in the document`,
    });
  }
  if (problems.length > 0) throw invalidInputError(problems, 'The document was not imported');
}
