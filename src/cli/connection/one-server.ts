import { z } from 'zod';
import { isSlug } from '../../domain/slug.ts';
import { AppError } from '../../errors.ts';
import type { Output } from '../../operations/index.ts';
import type { RestClient } from './rest-client.ts';

const text = z.string().optional();
const credential = z.looseObject({
  token: text,
  password: text,
  client_secret: text,
  secret_access_key: text,
  session_token: text,
});

const credentials = z.union([credential, z.array(credential)]);

/** Fields of a configuration that commands use. The service may be of another version, and have others. */
const usedFields = z.looseObject({
  slug: z.string().refine(isSlug),
  name: z.string(),
  authentication: credentials.optional(),
  credentials: z.record(z.string(), credentials).optional(),
  oauth: z.looseObject({}).optional(),
  tools: z.array(
    z.looseObject({
      name: z.string(),
      method: z.string(),
      url: z.string(),
      description: z.string().optional(),
      disabled: z.boolean().optional(),
      input_schema: z
        .record(
          z.string(),
          z.unknown().refine((value) => value !== null),
        )
        .optional(),
    }),
  ),
});

export type OneServer = Omit<Output<'getMcpServer'>, 'config'> & { config: z.output<typeof usedFields> };

/**
 * A server with its configuration, whose slug is the one that was asked for: files are named by it.
 * @throws AppError as `RestClient.run`, and unavailable for another server or no configuration
 */
export async function oneServer(client: RestClient, slug: string): Promise<OneServer> {
  const answer = await client.run('getMcpServer', { slug });
  const read = usedFields.safeParse(answer.config);
  if (!read.success || read.data.slug !== slug.toLowerCase())
    throw new AppError(
      'unavailable',
      `the service answered with no configuration of the server ${JSON.stringify(slug)}; is its address right?`,
    );
  // As it came, because its order counts in files.
  return { ...answer, config: answer.config as OneServer['config'] };
}
