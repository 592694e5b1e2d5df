import { Badge, Button, Group, Stack, Text } from '@mantine/core';
import { IconLock } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useSearchParams } from 'react-router';
import { movedSecretIn } from '../../../../src/domain/warnings/moved-secret.ts';
import type { Secret } from '../../answers.ts';
import { api } from '../../api.ts';
import { useCanEdit } from '../../frame/session.ts';
import { queryKeys } from '../../query-keys.ts';
import { Confirm } from '../../ui/actions/confirm.tsx';
import { useAction } from '../../ui/actions/use-action.ts';
import { type Column, Rows } from '../../ui/rows.tsx';
import { Section } from '../../ui/section.tsx';
import { Empty } from '../../ui/states/empty.tsx';
import { Loaded } from '../../ui/states/loaded.tsx';
import { ViewerNote } from '../../ui/states/viewer-note.tsx';
import { Time } from '../../ui/text/time.tsx';
import { isObject } from '../config.ts';
import { useShownServer } from '../server-page.tsx';
import { SecretForm } from './secret-form.tsx';

/** The secrets of a server. Values are never shown. */
export function SecretsTab() {
  const detail = useShownServer();
  const { slug } = detail.server;
  const canEdit = useCanEdit();
  const [name, setName] = useState(useSearchParams()[0].get('name') ?? '');
  const [deleted, setDeleted] = useState<Secret>();
  const query = useQuery({
    queryKey: queryKeys.secrets(slug),
    queryFn: ({ signal }) => api('listSecrets', { slug }, { signal }),
  });
  const missing = secretNames(detail.config).filter((wanted) => !detail.secrets.includes(wanted));
  const moved = detail.warnings.flatMap(({ message }) => movedSecretIn(message) ?? []);
  const remove = useAction({
    run: (secret: Secret) => api('deleteSecret', { slug, name: secret.name }),
    done: (_, secret) => `Deleted the secret ${secret.name}`,
    refresh: [queryKeys.servers, ['preview']],
    onDone: () => setDeleted(undefined),
  });
  return (
    <Stack gap="md">
      <ViewerNote>Only editors and owners set secrets.</ViewerNote>
      {canEdit && (
        <SecretForm slug={slug} missing={missing} moved={moved.filter(isSecretName)} name={name} onName={setName} />
      )}
      <Section title="Stored secrets" text="Values are sealed; only their names are ever shown." flush>
        <Loaded query={query}>
          {({ secrets }) =>
            secrets.length === 0 ? (
              <Empty
                icon={<IconLock size={24} />}
                title="No secrets"
                text="Write {{NAME}} in a header or as the credential, and set its value here."
              />
            ) : (
              <Rows
                label="Secrets"
                columns={columnsFor(canEdit, setName, setDeleted)}
                rows={secrets}
                keyOf={(secret) => secret.name}
              />
            )
          }
        </Loaded>
      </Section>
      <Confirm
        opened={deleted !== undefined}
        title={`Delete the secret ${deleted?.name ?? ''}?`}
        action="Delete secret"
        isPending={remove.isPending}
        error={remove.error}
        onClose={() => setDeleted(undefined)}
        onConfirm={() => deleted && remove.mutate(deleted)}
      >
        <Text size="sm">Tools that use it fail until it is set again.</Text>
      </Confirm>
    </Stack>
  );
}

function columnsFor(
  canEdit: boolean,
  onReplace: (name: string) => void,
  onDelete: (secret: Secret) => void,
): Column<Secret>[] {
  return [
    { label: 'Name', cell: ({ name }) => <Text className="th-mono">{name}</Text> },
    {
      label: 'Used by',
      cell: ({ used_by }) =>
        used_by.length > 0 ? <Text size="sm">{used_by.join(', ')}</Text> : <Badge color="gray">nothing</Badge>,
    },
    {
      label: 'Goes only to',
      cell: ({ origins }) =>
        origins.length === 0
          ? 'no host yet'
          : origins.map((origin) => (
              <Text key={origin} className="th-mono" title={origin}>
                {origin}
              </Text>
            )),
    },
    { label: 'Set', cell: ({ updated_at }) => <Time at={updated_at} /> },
    ...(canEdit
      ? [
          {
            label: 'Actions',
            quiet: true,
            end: true,
            cell: (secret: Secret) => (
              <Group gap={6} justify="flex-end" wrap="nowrap">
                <Button
                  size="compact-sm"
                  variant="default"
                  aria-label={`Replace ${secret.name}`}
                  onClick={() => onReplace(secret.name)}
                >
                  Replace
                </Button>
                <Button
                  size="compact-sm"
                  variant="default"
                  aria-label={`Delete ${secret.name}`}
                  onClick={() => onDelete(secret)}
                >
                  Delete
                </Button>
              </Group>
            ),
          },
        ]
      : []),
  ];
}

/** Whether it is set here, and not in a field of the configuration. */
function isSecretName(name: string): boolean {
  return /^\w+$/.test(name);
}

/** The NAMEs of every {{NAME}} in a configuration that is no variable. */
function secretNames(config: unknown): string[] {
  const found = JSON.stringify(config ?? null).matchAll(/\{\{\s*([A-Za-z_]\w{0,63})\s*\}\}/g);
  const names = new Set([...found].map((match) => match[1] ?? ''));
  const variables = isObject(config) && isObject(config.variables) ? config.variables : {};
  return [...names].filter((name) => !Object.hasOwn(variables, name));
}
