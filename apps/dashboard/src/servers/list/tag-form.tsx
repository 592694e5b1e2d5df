import { Button } from '@mantine/core';
import { useState } from 'react';
import { api } from '../../api.ts';
import type { ServerRecord } from '../../api-types.ts';
import { queryKeys } from '../../query-keys.ts';
import { getFormErrors } from '../../ui/actions/form-errors.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { Form } from '../../ui/form.tsx';
import { getErrorMessage, toSentence } from '../../ui/states/problem-alert.tsx';
import { TagsInput } from '../../ui/tags-input.tsx';
import { toVisible } from '../../ui/text/visible.ts';

export function TagForm({ server, onDone }: { server: ServerRecord; onDone: () => void }) {
  const [tags, setTags] = useState(server.tags ?? []);
  const save = useAction({
    run: (next: string[]) => api('setServerTags', { slug: server.slug, tags: next }),
    toast: () => `Saved the tags of ${toVisible(server.name)}`,
    refresh: [queryKeys.servers],
    onSuccess: onDone,
  });
  const { problems, failure } = getFormErrors(save, tags);
  return (
    <Form onSubmit={() => save.mutate(tags)}>
      <TagsInput
        label="Tags"
        description="Up to ten, to find servers by. Press Enter after each. Agents never see them."
        value={tags}
        onChange={setTags}
        maxTags={10}
        error={problems[0] ? toSentence(problems[0].message) : failure && getErrorMessage(failure)}
        data-autofocus
      />
      <Button type="submit" mt="sm" loading={save.isPending}>
        Save tags
      </Button>
    </Form>
  );
}
