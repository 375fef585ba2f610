package script

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// check refuses a rule that could not mean what it says.
func (r *rule) check() error {
	replies := r.replies()
	fails := r.Status != 0 && r.Status != 200 || r.Body != nil
	switch {
	case !replies && !fails && !r.Garbage && !r.Cut.given:
		return errors.New("the rule answers nothing: give it say, call, calls, call_raw, reasoning, refusal or a fault")
	case replies && fails: // status 200 is what a reply has
		return errors.New("a rule either replies or fails (status, body)")
	case !replies && (r.Finish != "" || r.Usage != usage{}):
		return errors.New("finish and usage belong to a reply, not to a fault")
	case (r.RetryAfter != "" || r.RetryAfterDate != nil) && r.Status == 0:
		return errors.New("retry_after needs a status")
	case r.RetryAfter != "" && r.RetryAfterDate != nil:
		return errors.New("retry_after and retry_after_date exclude each other")
	case r.Garbage && r.Body != nil:
		return errors.New("garbage and body exclude each other")
	case r.Call != nil && r.Calls != nil:
		return errors.New("call and calls exclude each other")
	case r.Status != 0 && (r.Status < 200 || r.Status > 599):
		return fmt.Errorf("status %d is not between 200 and 599", r.Status)
	case r.Latency < 0:
		return fmt.Errorf("latency %s is negative", time.Duration(r.Latency))
	case r.Slow < 0:
		return fmt.Errorf("slow %s is negative", time.Duration(r.Slow))
	case r.Split < 0:
		return fmt.Errorf("split %d is negative", r.Split)
	case strings.ContainsAny(r.RetryAfter, "\r\n"):
		return errors.New("retry_after is one line")
	}
	for _, n := range []*int64{r.Usage.Input, r.Usage.Output, r.Usage.Reasoning} {
		if n != nil && *n < 0 {
			return fmt.Errorf("usage %d is negative", *n)
		}
	}
	if r.CallRaw != nil && r.CallRaw.Name == "" {
		return errors.New("call_raw has no name")
	}
	if _, err := r.toolCalls(nil); err != nil {
		return err
	}
	return r.When.check()
}

// replies tells whether the rule has something to say; a rule that only cuts says nothing.
func (r *rule) replies() bool {
	return r.Say != nil || r.Call != nil || r.Calls != nil || r.CallRaw != nil || r.Reasoning != "" || r.Refusal != ""
}
