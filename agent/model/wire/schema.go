package wire

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"skein/agent/model"
)

// Schemas remembers whether a model takes a schema for its answer: many servers of a dialect
// do not know the field, or not all that a schema may hold. The zero value supposes that it
// does. It is safe for concurrent use.
type Schemas struct{ none atomic.Bool }

// Ask carries out an exchange. A request that is refused as wrong is repeated once without
// its schema; if that helps, no later one has a schema either. What the answer has to look
// like is said in the conversation too, and the caller validates it.
func (s *Schemas) Ask(ctx context.Context, req model.Request, exchange func(context.Context, model.Request) (model.Reply, error)) (model.Reply, error) {
	if s.none.Load() {
		req.Schema = nil
	}
	reply, err := exchange(ctx, req)
	if len(req.Schema) == 0 || !wrong(err) {
		return reply, err
	}
	req.Schema = nil
	reply, err = exchange(ctx, req)
	if err == nil {
		s.none.Store(true)
	}
	return reply, err
}

// wrong reports whether the server finds fault with the request itself.
func wrong(err error) bool {
	failed := (*model.Error)(nil)
	return errors.As(err, &failed) && !failed.TooLong &&
		(failed.Status == http.StatusBadRequest || failed.Status == http.StatusUnprocessableEntity)
}
