import { ActionIcon, Box, Button, Group, Stack, Text } from '@mantine/core';
import { IconPlus, IconX } from '@tabler/icons-react';
import { isObject, type PathPart } from '../../config.ts';
import { useEditor, useValue } from '../model/editor-context.ts';
import { AuthenticationFields } from './authentication-fields.tsx';

const mostCredentials = 4;

/** Whether a credential is stored; otherwise it is the token of the caller or of a login. */
export function isStoredCredential(one: unknown): boolean {
  if (!isObject(one)) return false;
  if (one.type === 'ClientCredentials' || one.type === 'AwsSigV4') return true;
  return one.token !== undefined || one.user !== undefined || one.password !== undefined;
}

/** The credentials at `at` that the API gets: one, or several in locations of their own. */
export function CredentialList({ at, isStored }: { at: readonly PathPart[]; isStored: boolean }) {
  const { set, isReadOnly } = useEditor();
  const authentication = useValue(at);
  const isList = Array.isArray(authentication);
  const all: unknown[] = isList ? authentication : [authentication];
  const pathOf = (index: number): PathPart[] => (isList ? [...at, index] : [...at]);
  const second = { type: 'ApiKey', header: 'X-Second-Key', token: '{{SECOND_KEY}}' };
  return (
    <Stack gap="md">
      {all.map((one, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a credential has no identity but its index
        <Box key={index}>
          {all.length > 1 && (
            <Group justify="space-between" mb={4}>
              <Text size="sm" fw={600}>
                Credential {index + 1}
              </Text>
              {!isReadOnly && (
                <ActionIcon
                  variant="subtle"
                  color="gray"
                  aria-label={`Remove credential ${index + 1}`}
                  onClick={() => set(at, all.toSpliced(index, 1))}
                >
                  <IconX size={16} />
                </ActionIcon>
              )}
            </Group>
          )}
          <AuthenticationFields path={pathOf(index)} isStored={isStored || isStoredCredential(one)} />
        </Box>
      ))}
      {!isReadOnly && authentication !== undefined && all.length < mostCredentials && (
        <Group>
          <Button
            variant="subtle"
            size="compact-sm"
            leftSection={<IconPlus size={14} />}
            onClick={() => set(at, [...all, second])}
          >
            Another credential
          </Button>
        </Group>
      )}
    </Stack>
  );
}
