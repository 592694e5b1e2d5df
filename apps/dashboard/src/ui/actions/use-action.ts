import { notifications } from '@mantine/notifications';
import { type QueryKey, type UseMutationResult, useMutation, useQueryClient } from '@tanstack/react-query';
import { ApiProblem } from '../../api.ts';
import { refetchQueries } from '../../query-client.ts';
import { getErrorMessage } from '../states/problem-alert.tsx';
import { toVisible } from '../text/visible.ts';
import { usePress } from './press.ts';

export type Action<Input, Output> = {
  run: (input: Input) => Promise<Output>;
  /** Returns the text of the toast after success. */
  toast?: (output: Output, input: Input) => string;
  /** Query keys to refetch after success. */
  refresh?: readonly QueryKey[];
  onSuccess?: (output: Output, input: Input) => void;
  /** True to show failures as a toast. Forms show them inline. */
  toastFailure?: boolean;
};

/** User action: runs it, shows a toast, and refetches changed data. */
export function useAction<Input = void, Output = unknown>(
  action: Action<Input, Output>,
): UseMutationResult<Output, Error, Input> {
  const client = useQueryClient();
  const { afterClick } = usePress();
  return useMutation<Output, Error, Input>({
    mutationFn: action.run,
    onSuccess: (output, input) =>
      afterClick(() => {
        for (const queryKey of action.refresh ?? []) void refetchQueries(client, { queryKey });
        if (action.toast) notifications.show({ message: toVisible(action.toast(output, input)), color: 'green' });
        action.onSuccess?.(output, input);
      }),
    onError: (error) =>
      afterClick(() => {
        // After a conflict, the data is outdated, so a retry would fail, too.
        if (error instanceof ApiProblem && error.status === 409)
          for (const queryKey of action.refresh ?? []) void refetchQueries(client, { queryKey });
        if (action.toastFailure)
          notifications.show({
            title: 'Something went wrong',
            message: getErrorMessage(error),
            color: 'red',
            autoClose: 10_000,
          });
      }),
  });
}
