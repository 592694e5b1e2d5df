import { Button, Group, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import { api } from '../api.ts';
import { useIsOwner, useSession } from '../frame/session.ts';
import { queryKeys } from '../query-keys.ts';
import { refusalOf } from '../ui/actions/refusal.ts';
import { useAction } from '../ui/actions/use-action.ts';
import { Section } from '../ui/section.tsx';
import { messageOf, sentence } from '../ui/states/problem-alert.tsx';

export function WorkspaceSection() {
  const { workspace } = useSession();
  const isOwner = useIsOwner();
  const form = useForm({ initialValues: { name: workspace.name } });
  const rename = useAction({
    run: ({ name }: { name: string }) => api('renameWorkspace', { name }),
    done: () => 'Renamed the workspace',
    refresh: [queryKeys.session],
  });
  const { problems, failure } = refusalOf(rename, form.values);
  const error = problems[0] ? sentence(problems[0].message) : failure && messageOf(failure);
  return (
    <Section title="Workspace" text="People see its name when they log in at one of its servers.">
      <form onSubmit={form.onSubmit((values) => rename.mutate(values))}>
        <Group gap="sm" align="flex-start">
          <TextInput
            label="Workspace name"
            flex="1 1 16rem"
            maw={420}
            {...form.getInputProps('name')}
            error={error}
            readOnly={!isOwner}
          />
          {isOwner && (
            <Button
              type="submit"
              variant="default"
              className="th-beside"
              loading={rename.isPending}
              disabled={form.values.name === workspace.name}
            >
              Rename
            </Button>
          )}
        </Group>
      </form>
    </Section>
  );
}
